package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"syscall"
	"time"

	"meanwhile/host/tool/webfetch"
)

const (
	hopsMax     = 3       // redirects
	responseMax = 4 << 10 // of a response's body that is read
)

var errPrivate = errors.New("the address is not a public one: set notify.allow_private if that is meant")

// poster sends requests. trusted reaches any address, public only those of the
// public internet.
type poster struct{ trusted, public *http.Client }

func newPoster(allowPrivate bool) *poster {
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	client := func(control func(string, string, syscall.RawConn) error) *http.Client {
		d := &net.Dialer{Timeout: sendLimit, Control: control}
		return &http.Client{CheckRedirect: stay, Transport: &http.Transport{
			// No proxy: the address that is checked must be the one that is reached.
			DialContext: d.DialContext, ForceAttemptHTTP2: true,
			MaxIdleConns: 16, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute,
		}}
	}
	p := &poster{trusted: client(nil), public: client(publicOnly)}
	if allowPrivate {
		p.public = p.trusted
	}
	return p
}

// publicOnly looks at the address that is really dialled.
func publicOnly(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return errPrivate
	}
	if a, err := netip.ParseAddr(host); err != nil || !webfetch.Public(a) {
		return errPrivate
	}
	return nil
}

func (p *poster) close() {
	p.trusted.CloseIdleConnections()
	p.public.CloseIdleConnections()
}

// message is one request to a target.
type message struct {
	method  string
	url     string
	header  http.Header
	body    []byte
	trusted bool // the owner of the host named the address
}

// do sends a message, by redirects that keep it whole. secret names headers
// that another host must not see.
func (p *poster) do(ctx context.Context, m message, secret ...string) error {
	client := p.public
	if m.trusted {
		client = p.trusted
	}
	at, header := m.url, m.header.Clone()
	for range hopsMax + 1 {
		req, err := http.NewRequestWithContext(ctx, m.method, at, bytes.NewReader(m.body))
		if err != nil {
			return &sendError{text: "the address is not usable", final: true}
		}
		req.Header = header
		resp, err := client.Do(req)
		if err != nil {
			return transportError(err)
		}
		_, _ = io.CopyN(io.Discard, resp.Body, responseMax) // so that the connection can be used again
		resp.Body.Close()
		switch {
		case resp.StatusCode < 300:
			return nil
		case resp.StatusCode == http.StatusTemporaryRedirect, resp.StatusCode == http.StatusPermanentRedirect:
			next, err := resp.Location()
			if err != nil || next.Scheme != "http" && next.Scheme != "https" || req.URL.Scheme == "https" && next.Scheme != "https" {
				return &sendError{text: "a redirect leads nowhere that is safe", final: true}
			}
			if next.Host != req.URL.Host {
				header = header.Clone()
				for _, name := range secret {
					header.Del(name)
				}
			}
			at, client = next.String(), p.public
		default:
			return statusError(resp)
		}
	}
	return &sendError{text: fmt.Sprintf("more than %d redirects", hopsMax), final: true}
}

// transportError leaves the address out: it may hold a secret.
func transportError(err error) error {
	if errors.Is(err, errPrivate) {
		return &sendError{text: errPrivate.Error(), final: true}
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return &sendError{text: "not reached: " + err.Error()}
}

func statusError(resp *http.Response) error {
	e := &sendError{text: "answered " + strconv.Itoa(resp.StatusCode)}
	switch code := resp.StatusCode; {
	case code == http.StatusNotFound, code == http.StatusGone:
		e.final, e.gone = true, true
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests, code >= 500:
		if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 && s < 1<<20 {
			e.after = time.Duration(s) * time.Second
		}
	default:
		e.final = true
	}
	return e
}

// hostOf is what of an address can be shown.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}
