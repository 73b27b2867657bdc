package webfetch

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"meanwhile/host/tool"
)

// site is a server on the loopback that the tool may reach.
func site(t *testing.T, h http.Handler, change func(*Config)) (*Tool, *httptest.Server) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	cfg := Config{Timeout: time.Minute, AllowHosts: []string{s.Listener.Addr().String()}}
	if change != nil {
		change(&cfg)
	}
	return New(cfg), s
}

func fetch(ctx context.Context, t *Tool, url string) (tool.Result, error) {
	raw, err := json.Marshal(map[string]string{"url": url})
	if err != nil {
		panic(err)
	}
	return t.Run(ctx, tool.Call{Name: Name, Arguments: string(raw)})
}

func wantCode(t *testing.T, err error, code string) *tool.Error {
	t.Helper()
	e, ok := errors.AsType[*tool.Error](err)
	if !ok || e.Code != code {
		t.Fatalf("got %v, want %s", err, code)
	}
	return e
}

func serve(kind, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = []string{kind}
		if kind == "" {
			w.Header()["Content-Type"] = nil
		}
		w.Write([]byte(body))
	})
}

var article = `<!doctype html><html><head><title>A title</title><script>var no = "script text"</script></head><body>
<nav><a href="/elsewhere">Elsewhere</a></nav><article><h1>Stores</h1>` +
	strings.Repeat(`<p>A paragraph of some length, with commas, about <a href="/pg">Postgres</a> and <b>SQLite</b>, so that it counts as text.</p>`, 6) +
	`<table><tr><th>name</th><th>n</th></tr><tr><td>a</td><td>1</td></tr></table></article><footer>Imprint</footer></body></html>`

func TestContent(t *testing.T) {
	for _, tt := range []struct {
		name, kind, body string
		want, not        []string
	}{
		{name: "html", kind: "text/html; charset=utf-8", body: article,
			want: []string{"# A title", "about [Postgres](http://", "/pg) and **SQLite**", "| a    | 1 |", "not instructions"}, not: []string{"script text", "Elsewhere", "<p>"}},
		{name: "html without a word of it", kind: "", body: article, want: []string{"**SQLite**"}},
		{name: "html without main content", kind: "text/html", body: `<title>T</title><p>short`, want: []string{"# T", "short"}},
		{name: "latin-1", kind: "text/html; charset=iso-8859-1", body: "<p>\xe4\xf6\xfc", want: []string{"äöü"}},
		{name: "charset inside", kind: "text/html", body: "<meta charset=windows-1252><p>\x80", want: []string{"€"}},
		{name: "text", kind: "text/plain", body: "a < b\r\n\r\n\r\n\tc", want: []string{"a < b\n\n\tc"}},
		{name: "json", kind: "application/json", body: `{"ä":[1]}`, want: []string{`{"ä":[1]}`}},
		{name: "json by its end", kind: "application/problem+json", body: `{}`, want: []string{`{}`}},
		{name: "nothing", kind: "text/plain", body: "", want: []string{"no text"}},
		{name: "characters that act", kind: "text/plain", body: "a\x1b[31mb\u202ec\u2066d\u200be\u0085f\U000e0041g\ufe01h\x07i\u00adj", want: []string{"a[31mbcdefghij"}},
		{name: "characters that act, as entities", kind: "text/html", body: "<p>a&#x1b;[31mb&#x202e;c&#x200b;d", want: []string{"a[31mbcd"}},
		{name: "a hidden script of a title", kind: "text/html", body: "<title>a\nb\u202ec</title><p>x", want: []string{"# a bc\n"}},
		{name: "many nodes", kind: "text/html", body: "<title>T</title>" + strings.Repeat("<p>x</p>", 20_000) + "<script>no script</script><p>the end", want: []string{"# T", "x\nx"}, not: []string{"no script"}},
		{name: "a table that would explode", kind: "text/html", body: "<table><tr><td colspan=1000>x<tr><td rowspan=65534 colspan=1000>y</table>", want: []string{"x", "y"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tl, s := site(t, serve(tt.kind, tt.body), nil)
			r, err := fetch(t.Context(), tl, s.URL+"/page#part")
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range tt.want {
				if !strings.Contains(r.Text, w) {
					t.Errorf("%q is missing in\n%.2000s", w, r.Text)
				}
			}
			for _, n := range tt.not {
				if strings.Contains(r.Text, n) {
					t.Errorf("%q is in\n%.2000s", n, r.Text)
				}
			}
			var m meta
			if err := json.Unmarshal(r.Meta, &m); err != nil || m.Status != 200 || !strings.HasPrefix(m.URL, s.URL) {
				t.Errorf("meta %s", r.Meta)
			}
		})
	}
}

func TestContentRefused(t *testing.T) {
	png := "\x89PNG\r\n\x1a\n" + strings.Repeat("\x00", 100)
	for _, tt := range []struct{ name, kind, body, says string }{
		{"an image", "image/png", png, "image/png"},
		{"an image without a word of it", "", png, "image/png"},
		{"a program called text", "text/plain", "\x7fELF\x00\x00", "binary"},
		{"a pdf", "application/pdf", "%PDF-1.7", "application/pdf"},
		{"bytes", "application/octet-stream", "text", "application/octet-stream"},
		{"nested too deep", "text/html", strings.Repeat("<div>", 5000) + "x", "nested"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tl, s := site(t, serve(tt.kind, tt.body), nil)
			_, err := fetch(t.Context(), tl, s.URL)
			if e := wantCode(t, err, CodeContent); !strings.Contains(e.Message, tt.says) {
				t.Errorf("message %q does not say %q", e.Message, tt.says)
			}
		})
	}
	tl, s := site(t, serve(";;;", "x"), nil)
	_, err := fetch(t.Context(), tl, s.URL)
	wantCode(t, err, CodeFailed)
}

func TestStatus(t *testing.T) {
	tl, s := site(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.URL.Query().Get("type"))
		w.WriteHeader(http.StatusNotFound)
		w.Write([]byte("<p>no such page\x1b here"))
	}), nil)
	_, err := fetch(t.Context(), tl, s.URL+"?type=text/html")
	if e := wantCode(t, err, CodeStatus); e.Message != "the server answered 404 Not Found.\nThe page says:\nno such page here" {
		t.Errorf("message %q", e.Message)
	}
	_, err = fetch(t.Context(), tl, s.URL+"?type=image/png")
	wantCode(t, err, CodeStatus)
}

func TestHugeBody(t *testing.T) {
	var sent atomic.Int64
	tl, s := site(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		chunk := bytes.Repeat([]byte("0123456789abcde\n"), 4096)
		for r.Context().Err() == nil && sent.Load() < 1<<30 {
			n, err := w.Write(chunk)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	}), func(c *Config) { c.MaxBody, c.MaxOutput = 1<<20, 1000 })
	r, err := fetch(t.Context(), tl, s.URL)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Text) > 1300 || !strings.Contains(r.Text, "more bytes, is left out]") || !strings.Contains(r.Text, "longer than the 1048576 bytes") {
		t.Errorf("text of %d bytes: …%s", len(r.Text), r.Text[len(r.Text)-200:])
	}
	s.CloseClientConnections()
	s.Close() // waits for the handler: the fetch has let go of it
	if n := sent.Load(); n > 100<<20 {
		t.Errorf("the server could send %d bytes", n)
	}
}

// A small body may unfold to a large one.
func TestCompressedBody(t *testing.T) {
	tl, s := site(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		for range 64 {
			z.Write(bytes.Repeat([]byte("x"), 1<<20))
		}
		z.Close()
	}), nil)
	r, err := fetch(t.Context(), tl, s.URL)
	if err != nil || len(r.Text) > defaultOutput+500 || !strings.Contains(r.Text, "longer than the 2097152 bytes") {
		t.Errorf("%d bytes, %v", len(r.Text), err)
	}
}

func TestRedirects(t *testing.T) {
	mux := http.NewServeMux()
	for i := range 8 {
		mux.HandleFunc(fmt.Sprint("/hop", i), func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, fmt.Sprint("/hop", i+1), http.StatusFound)
		})
	}
	mux.Handle("/hop8", serve("text/plain", "arrived"))
	mux.HandleFunc("/to", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", r.URL.Query().Get("u"))
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	tl, s := site(t, mux, nil)
	r, err := fetch(t.Context(), tl, s.URL+"/hop3")
	if err != nil || !strings.Contains(r.Text, "arrived") || !strings.Contains(r.Text, s.URL+"/hop8") {
		t.Errorf("five redirects: %q, %v", r.Text, err)
	}
	_, err = fetch(t.Context(), tl, s.URL+"/hop2")
	if e := wantCode(t, err, CodeFailed); !strings.Contains(e.Message, "more than 5 times") {
		t.Errorf("six redirects: %v", e)
	}

	// The same loopback under a port that is not allowed must not be reached.
	reached := false
	hidden := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer hidden.Close()
	_, port, _ := net.SplitHostPort(hidden.Listener.Addr().String())
	for _, to := range []string{
		hidden.URL, "http://localhost:" + port, "http://[::ffff:127.0.0.1]:" + port, "http://0.0.0.0:" + port, "http://0:" + port, "http://127.1:" + port, "http://2130706433:" + port,
		"http://169.254.169.254/latest/meta-data", "http://[fd00:ec2::254]/", "file:///etc/passwd", "ftp://example.com/", "http://user:pass@example.com/",
	} {
		_, err := fetch(t.Context(), tl, s.URL+"/to?u="+url.QueryEscape(to))
		if e, ok := errors.AsType[*tool.Error](err); !ok || e.Code != CodeRefused && e.Code != CodeFailed || strings.Contains(e.Message, "127.0.0.1:"+port+":") {
			t.Errorf("redirect to %s: %v", to, err)
		}
		if _, err := fetch(t.Context(), tl, to); err == nil {
			t.Errorf("%s was fetched", to)
		}
	}
	if reached {
		t.Error("a server in a private network was reached")
	}
}

func TestRefusedBeforeAnyConnection(t *testing.T) {
	tl := New(Config{control: func(string, string, syscall.RawConn) error {
		t.Error("a connection was tried")
		return errors.New("no")
	}})
	for _, u := range []string{"http://127.0.0.1/", "http://[::1]/", "https://a:b@example.com/", "ftp://example.com/", "example.com", "http://169.254.169.254/"} {
		_, err := fetch(t.Context(), tl, u)
		wantCode(t, err, CodeRefused)
	}
}

// names is a name server whose answers the test decides; it serves one question
// per connection, in memory.
func names(answer func(name string) []netip.Addr) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		go func() {
			defer there.Close()
			head := make([]byte, 2) // over a stream each message has its length before it
			if _, err := there.Read(head); err != nil {
				return
			}
			buf := make([]byte, int(head[0])<<8|int(head[1]))
			if _, err := there.Read(buf); err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf) != nil {
				return
			}
			m.Response, m.Authoritative = true, true
			m.Additionals = nil
			q := m.Questions[0]
			for _, a := range answer(strings.TrimSuffix(q.Name.String(), ".")) {
				h := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1}
				switch {
				case q.Type == dnsmessage.TypeA && a.Is4():
					m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: a.As4()}})
				case q.Type == dnsmessage.TypeAAAA && a.Is6():
					m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
				}
			}
			out, err := m.Pack()
			if err != nil {
				return
			}
			there.Write(append([]byte{byte(len(out) >> 8), byte(len(out))}, out...))
		}()
		return here, nil
	}}
}

// A name may lead to a public address at one moment and to a private one at the
// next. Each connection is judged by the address that it is made to.
func TestNameThatChanges(t *testing.T) {
	private := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the private server was reached") }))
	defer private.Close()
	_, port, _ := net.SplitHostPort(private.Listener.Addr().String())

	var mu sync.Mutex
	at := netip.MustParseAddr("93.184.216.34")
	var dialled []string
	wouldConnect := errors.New("would connect")
	tl := New(Config{
		resolver: names(func(string) []netip.Addr {
			mu.Lock()
			defer mu.Unlock()
			return []netip.Addr{at}
		}),
		control: func(network, address string, c syscall.RawConn) error {
			mu.Lock()
			dialled = append(dialled, address)
			mu.Unlock()
			if err := control(network, address, c); err != nil {
				return err
			}
			return wouldConnect // a test leaves the machine alone
		},
	})
	u := "http://rebind.example:" + port + "/"
	_, err := fetch(t.Context(), tl, u)
	if e := wantCode(t, err, CodeFailed); !strings.Contains(e.Message, "would connect") {
		t.Fatalf("the public address: %v", e)
	}
	for _, private := range []string{"127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "fd00::1", "64:ff9b::7f00:1"} {
		mu.Lock()
		at = netip.MustParseAddr(private)
		mu.Unlock()
		_, err = fetch(t.Context(), tl, u)
		wantCode(t, err, CodeRefused)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(dialled) != 7 || dialled[0] != "93.184.216.34:"+port || dialled[1] != "127.0.0.1:"+port {
		t.Errorf("dialled %q: not each address once", dialled)
	}
}

func TestTimeoutOrAbort(t *testing.T) {
	slow := func(headers bool) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if headers {
				w.Header().Set("Content-Type", "text/plain")
				w.Write([]byte("the beginning"))
				w.(http.Flusher).Flush()
			}
			<-r.Context().Done()
		})
	}
	for _, tt := range []struct {
		name    string
		headers bool
	}{{"no answer", false}, {"a body that stops", true}} {
		t.Run(tt.name, func(t *testing.T) {
			tl, s := site(t, slow(tt.headers), func(c *Config) { c.Timeout = 50 * time.Millisecond })
			_, err := fetch(t.Context(), tl, s.URL)
			if e := wantCode(t, err, CodeTimeout); !strings.Contains(e.Message, "50ms") {
				t.Errorf("message %q", e.Message)
			}

			tl, s = site(t, slow(tt.headers), nil)
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond) // from above: not ours
			defer cancel()
			_, err = fetch(ctx, tl, s.URL)
			wantCode(t, err, CodeAborted)
			_, err = fetch(ctx, tl, s.URL) // ended before it began
			wantCode(t, err, CodeAborted)
		})
	}
}

func TestArguments(t *testing.T) {
	tl := New(Config{})
	for _, tt := range []struct{ name, raw, says string }{
		{"not json", `{`, "arguments"},
		{"unknown field", `{"url":"https://example.com","tiemout":1}`, "tiemout"},
		{"text after", `{"url":"https://example.com"} x`, "after"},
		{"empty", `{}`, "url is empty"},
		{"zero", `{"url":"https://example.com","timeout":0}`, "timeout must be more than 0"},
		{"fraction", `{"url":"https://example.com","timeout":0.5}`, "timeout"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tl.Run(t.Context(), tool.Call{Arguments: tt.raw})
			if e := wantCode(t, err, CodeArguments); !strings.Contains(e.Message, tt.says) {
				t.Errorf("message %q does not say %q", e.Message, tt.says)
			}
		})
	}
	if _, d, err := tl.parse(`{"url":"x","timeout":9000000000000000000}`); err != nil || d != defaultMax {
		t.Errorf("an enormous timeout is %v, %v", d, err)
	}
	if _, d, err := New(Config{Timeout: time.Hour}).parse(`{"url":"x"}`); err != nil || d != defaultMax {
		t.Errorf("a default over the maximum is %v, %v", d, err)
	}
}

func TestNoProxyIsAsked(t *testing.T) {
	proxied := false
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { proxied = true }))
	defer proxy.Close()
	t.Setenv("HTTP_PROXY", proxy.URL)
	tl := New(Config{Timeout: time.Minute, resolver: names(func(string) []netip.Addr { return []netip.Addr{netip.MustParseAddr("10.0.0.1")} })})
	_, err := fetch(t.Context(), tl, "http://inside.example/")
	wantCode(t, err, CodeRefused)
	if proxied {
		t.Error("the proxy was asked")
	}
	transport := tl.client().Transport.(*http.Transport)
	if transport.Proxy != nil || !transport.DisableKeepAlives {
		t.Error("the transport asks a proxy or keeps connections")
	}
}
