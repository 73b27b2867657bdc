package webfetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html/charset"
)

// Limits.
const (
	redirectsMax = 5
	headerMax    = 64 << 10
	sniffMax     = 512
)

// errRedirects ends a chain that goes on and on.
var errRedirects = fmt.Errorf("more than %d redirects", redirectsMax)

// page is what a server sent.
type page struct {
	url    *url.URL // after redirects
	status int
	kind   string // media type, lower case
	body   []byte // UTF-8 if it is text
	cut    bool   // there was more
}

// client makes the client of one fetch. Nothing is kept for the next: a
// connection is dialled, and so checked, for every request.
func (t *Tool) client() *http.Client {
	open := &net.Dialer{Resolver: t.cfg.resolver}
	guarded := &net.Dialer{Resolver: t.cfg.resolver, Control: control}
	if t.cfg.control != nil {
		guarded.Control = t.cfg.control
	}
	return &http.Client{
		Transport: &http.Transport{
			Proxy: nil, // it would dial for us, unchecked
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				if slices.Contains(t.cfg.AllowHosts, address) {
					return open.DialContext(ctx, network, address)
				}
				return guarded.DialContext(ctx, network, address)
			},
			DisableKeepAlives:      true,
			ForceAttemptHTTP2:      true,
			MaxResponseHeaderBytes: headerMax,
		},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > redirectsMax {
				return errRedirects
			}
			return t.check(r.URL)
		},
	}
}

// check is checkURL, but for the hosts that are allowed.
func (t *Tool) check(u *url.URL) error {
	err := checkURL(u)
	if err != nil && u.User == nil && slices.Contains(t.cfg.AllowHosts, u.Host) && (u.Scheme == "http" || u.Scheme == "https") {
		return nil
	}
	return err
}

// fetch reads a page of at most cfg.MaxBody bytes.
func (t *Tool) fetch(ctx context.Context, u *url.URL) (*page, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, refused("this is not a URL that can be fetched")
	}
	r.URL.Fragment = ""
	r.Header.Set("User-Agent", t.cfg.UserAgent)
	r.Header.Set("Accept", "text/html,application/xhtml+xml,text/markdown,text/plain,application/json;q=0.9,*/*;q=0.5")
	client := t.client()
	defer client.CloseIdleConnections()
	resp, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	p := &page{url: resp.Request.URL, status: resp.StatusCode}
	if p.kind, err = kindOf(resp.Header.Get("Content-Type")); err != nil {
		return nil, err
	}
	// What is no text by its own word is not read at all.
	if p.kind != "" && !textual(p.kind) {
		return p, nil
	}
	// Of what a compressed body unfolds to.
	p.body, err = io.ReadAll(io.LimitReader(resp.Body, t.cfg.MaxBody+1))
	if err != nil {
		return nil, err
	}
	if int64(len(p.body)) > t.cfg.MaxBody {
		p.body, p.cut = p.body[:t.cfg.MaxBody], true
	}
	return p, p.decode(resp.Header.Get("Content-Type"))
}

// kindOf reads a media type; "" when the server gives none.
func kindOf(header string) (string, error) {
	if strings.TrimSpace(header) == "" {
		return "", nil
	}
	kind, _, err := mime.ParseMediaType(header)
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		return "", fmt.Errorf("the server gives a content type that is none: %.80q", header)
	}
	return kind, nil
}

// decode finds out what an untold body is, and makes text UTF-8.
func (p *page) decode(header string) error {
	if p.kind == "" {
		p.kind, _, _ = mime.ParseMediaType(http.DetectContentType(p.body[:min(len(p.body), sniffMax)]))
	}
	if !textual(p.kind) {
		p.body = nil
		return nil
	}
	e, _, _ := charset.DetermineEncoding(p.body, header)
	if p.kind == "application/json" || strings.HasSuffix(p.kind, "+json") {
		e, _ = charset.Lookup("utf-8")
	}
	text, err := e.NewDecoder().Bytes(p.body)
	if err != nil {
		return fmt.Errorf("the page cannot be decoded: %w", err)
	}
	if bytes.IndexByte(text, 0) >= 0 {
		p.kind, p.body = "binary data called "+p.kind, nil
		return nil
	}
	p.body = text
	return nil
}

// textual reports whether a media type is text for a model.
func textual(kind string) bool {
	switch kind {
	case "application/json", "application/xml", "application/xhtml+xml", "application/javascript", "application/ecmascript",
		"application/yaml", "application/x-yaml", "application/toml", "application/x-ndjson", "application/sql", "application/x-sh":
		return true
	}
	return strings.HasPrefix(kind, "text/") || strings.HasPrefix(kind, "application/") && (strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml"))
}

func (p *page) isHTML() bool { return p.kind == "text/html" || p.kind == "application/xhtml+xml" }
