package httpserver

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"meanwhile/host/auth"
)

type memory map[string][]byte

func (m memory) Put(k string, v []byte) error { m[k] = v; return nil }
func (m memory) Delete(k string) error        { delete(m, k); return nil }
func (m memory) Each(f func(string, []byte) error) error {
	for k, v := range m {
		if err := f(k, v); err != nil {
			return err
		}
	}
	return nil
}

type fixture struct {
	tokens *auth.Tokens
	codes  *auth.Codes
	bearer string
	token  auth.Token
	opts   Options
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	tokens, err := auth.OpenTokens(memory{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, token, err := tokens.Create("bot", auth.Scopes(auth.Ask))
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{tokens: tokens, codes: auth.NewCodes(tokens), bearer: text, token: token}
	f.opts = Options{
		Gate:   &auth.Gate{Tokens: tokens},
		Codes:  f.codes,
		Page:   fstest.MapFS{"index.html": {Data: []byte("<!doctype html>" + strings.Repeat(" ", 500))}, "assets/a-1234.js": {Data: []byte("1")}, "site.webmanifest": {Data: []byte("{}")}, ".gitkeep": {}},
		Module: []byte("\x00asm"),
		Socket: func(_ context.Context, w http.ResponseWriter, _ *http.Request, token *auth.Token) {
			name := "nobody"
			if token != nil {
				name = token.Label
			}
			plain(w, http.StatusTeapot, "socket of "+name)
		},
		Post: func(_ context.Context, token auth.Token, body []byte) (int, []byte, func()) {
			return http.StatusOK, append([]byte(token.Label+" "), body...), func() {}
		},
		Ready: func() error { return nil },
	}
	return f
}

func (f *fixture) server(t *testing.T) *Server {
	t.Helper()
	s, err := New(f.opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(context.Background()) })
	return s
}

func request(method, path, body string, header ...string) *http.Request {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "127.0.0.1:7331"
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

func TestRoutes(t *testing.T) {
	f := newFixture(t)
	h := f.server(t).Handler()
	const own, foreign = "http://127.0.0.1:7331", "https://evil.example"
	json := "application/json"
	bearer := "Bearer " + f.bearer
	for _, tc := range []struct {
		name   string
		method string
		path   string
		body   string
		header []string
		want   int
		text   string
	}{
		{name: "page", method: "GET", path: "/", want: 200, text: "<!doctype"},
		{name: "asset", method: "GET", path: "/assets/a-1234.js", want: 200, text: "1"},
		{name: "module", method: "GET", path: "/client.wasm", want: 200, text: "\x00asm"},
		{name: "head", method: "HEAD", path: "/", want: 200},
		{name: "missing file", method: "GET", path: "/nothing", want: 404},
		{name: "file of no kind", method: "GET", path: "/.gitkeep", want: 404},
		{name: "unclean path is not redirected", method: "GET", path: "/assets/../index.html", want: 404},
		{name: "page by post", method: "POST", path: "/", header: []string{"Origin", own}, want: 405},
		{name: "health", method: "GET", path: "/healthz", want: 200, text: "ok"},
		{name: "ready", method: "GET", path: "/readyz", want: 200, text: "ok"},

		{name: "socket of the page", method: "GET", path: "/rpc", header: []string{"Upgrade", "websocket", "Origin", own}, want: 418, text: "socket of nobody"},
		{name: "socket with bearer", method: "GET", path: "/rpc", header: []string{"Upgrade", "websocket", "Authorization", bearer}, want: 418, text: "socket of bot"},
		{name: "socket of another site", method: "GET", path: "/rpc", header: []string{"Upgrade", "websocket", "Origin", foreign}, want: 403},
		{name: "socket without origin", method: "GET", path: "/rpc", header: []string{"Upgrade", "websocket"}, want: 403},
		{name: "no upgrade", method: "GET", path: "/rpc", header: []string{"Origin", own}, want: 426},
		{name: "rpc by delete", method: "DELETE", path: "/rpc", header: []string{"Authorization", bearer}, want: 405},

		{name: "call", method: "POST", path: "/rpc", body: "{}", header: []string{"Authorization", bearer, "Content-Type", json}, want: 200, text: "bot {}"},
		{name: "call without token", method: "POST", path: "/rpc", body: "{}", header: []string{"Origin", own, "Content-Type", json}, want: 401},
		{name: "call as a form", method: "POST", path: "/rpc", body: "{}", header: []string{"Authorization", bearer, "Content-Type", "text/plain"}, want: 415},
		{name: "call too large", method: "POST", path: "/rpc", body: strings.Repeat(" ", maxCall+1), header: []string{"Authorization", bearer, "Content-Type", json}, want: 413},
		{name: "call of another site", method: "POST", path: "/rpc", body: "{}", header: []string{"Authorization", bearer, "Origin", foreign, "Content-Type", json}, want: 403},

		{name: "login of another site", method: "POST", path: "/auth/login", body: "{}", header: []string{"Origin", foreign, "Content-Type", json}, want: 403},
		{name: "login without code", method: "POST", path: "/auth/login", body: "{}", header: []string{"Origin", own, "Content-Type", json}, want: 401},
		{name: "login by get", method: "GET", path: "/auth/login", want: 405},
		{name: "login of the wrong shape", method: "POST", path: "/auth/login", body: "[]", header: []string{"Origin", own, "Content-Type", json}, want: 400},
		{name: "login too large", method: "POST", path: "/auth/login", body: strings.Repeat(" ", maxLogin+1), header: []string{"Origin", own, "Content-Type", json}, want: 413},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, request(tc.method, tc.path, tc.body, tc.header...))
			if w.Code != tc.want {
				t.Errorf("status %d (%q), want %d", w.Code, w.Body, tc.want)
			}
			if !strings.HasPrefix(w.Body.String(), tc.text) {
				t.Errorf("body %q, want it to begin with %q", w.Body, tc.text)
			}
			for header, want := range map[string]string{
				"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
				"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
			} {
				if got := w.Header().Get(header); got != want {
					t.Errorf("%s = %q, want %q", header, got, want)
				}
			}
			if tc.want == 405 && w.Header().Get("Allow") == "" {
				t.Error("405 without Allow")
			}
		})
	}
}

// A page reached under another name must get nothing, whatever the route.
func TestRebindingIsRefusedEverywhere(t *testing.T) {
	f := newFixture(t)
	h := f.server(t).Handler()
	for _, path := range []string{"/", "/client.wasm", "/assets/a-1234.js", "/rpc", "/auth/login", "/auth/logout", "/healthz", "/readyz", "/nothing"} {
		for _, method := range []string{"GET", "POST"} {
			r := request(method, path, "{}", "Authorization", "Bearer "+f.bearer, "Content-Type", "application/json", "Origin", "http://evil.example:7331")
			r.Host = "evil.example:7331"
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != http.StatusMisdirectedRequest {
				t.Errorf("%s %s = %d, want 421", method, path, w.Code)
			}
		}
	}
}

func TestLoginAndLogout(t *testing.T) {
	f := newFixture(t)
	h := f.server(t).Handler()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, request("POST", "/auth/login", `{"code":"`+f.codes.Issue()+`","label":"phone"}`, "Origin", "http://127.0.0.1:7331", "Content-Type", "application/json"))
	if w.Code != 200 || w.Header().Get("Cache-Control") != "no-store" {
		t.Fatalf("login = %d %s, cache %q", w.Code, w.Body, w.Header().Get("Cache-Control"))
	}
	_, rest, _ := strings.Cut(w.Body.String(), `"token":"`)
	text, _, _ := strings.Cut(rest, `"`)
	token, err := f.tokens.Verify(text)
	if err != nil || token.Label != "phone" || token.Scopes != auth.LoginScopes {
		t.Fatalf("token %+v, %v", token, err)
	}
	w = httptest.NewRecorder()
	h.ServeHTTP(w, request("POST", "/auth/logout", "", "Authorization", "Bearer "+text))
	if _, err := f.tokens.Verify(text); w.Code != 200 || err == nil {
		t.Errorf("logout = %d, token still good: %v", w.Code, err == nil)
	}
}

func TestLoginRateIsToldInHeader(t *testing.T) {
	f := newFixture(t)
	h := f.server(t).Handler()
	for range 100 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, request("POST", "/auth/login", `{"code":"guess"}`, "Origin", "http://127.0.0.1:7331", "Content-Type", "application/json"))
		if w.Code == http.StatusTooManyRequests {
			if w.Header().Get("Retry-After") == "" {
				t.Error("429 without Retry-After")
			}
			return
		}
	}
	t.Error("100 guesses and no limit")
}

func TestCaching(t *testing.T) {
	f := newFixture(t)
	h := f.server(t).Handler()
	for _, tc := range []struct{ path, want string }{
		{"/", "no-cache"},
		{"/index.html", "no-cache"},
		{"/site.webmanifest", "no-cache"},
		{"/client.wasm", "no-cache"},
		{"/assets/a-1234.js", "public, max-age=31536000, immutable"},
		{"/nothing", "no-store"},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, request("GET", tc.path, ""))
		if got := w.Header().Get("Cache-Control"); got != tc.want {
			t.Errorf("%s: Cache-Control %q, want %q", tc.path, got, tc.want)
		}
	}
	plainW, zipW, againW := httptest.NewRecorder(), httptest.NewRecorder(), httptest.NewRecorder()
	h.ServeHTTP(plainW, request("GET", "/", ""))
	h.ServeHTTP(zipW, request("GET", "/", "", "Accept-Encoding", "br, gzip;q=0.8"))
	h.ServeHTTP(againW, request("GET", "/", "", "Accept-Encoding", "gzip", "If-None-Match", zipW.Header().Get("ETag")))
	z, err := gzip.NewReader(zipW.Body)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, plainW.Body.Bytes()) {
		t.Errorf("compressed body differs: %v", err)
	}
	if a, b := plainW.Header().Get("ETag"), zipW.Header().Get("ETag"); a == b || a == "" {
		t.Errorf("tags %q and %q: each encoding needs its own", a, b)
	}
	if againW.Code != http.StatusNotModified {
		t.Errorf("a known tag = %d, want 304", againW.Code)
	}
}

func TestNotReady(t *testing.T) {
	f := newFixture(t)
	f.opts.Ready = func() error { return errors.New("module trapped") }
	w := httptest.NewRecorder()
	f.server(t).Handler().ServeHTTP(w, request("GET", "/readyz", ""))
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "module trapped") {
		t.Errorf("readyz = %d %q, want 503 and the reason", w.Code, w.Body)
	}
}

func TestUnbuiltPageSaysSo(t *testing.T) {
	f := newFixture(t)
	f.opts.Page = fstest.MapFS{".gitkeep": {}}
	w := httptest.NewRecorder()
	f.server(t).Handler().ServeHTTP(w, request("GET", "/", ""))
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "make build") {
		t.Errorf("page = %d %q", w.Code, w.Body)
	}
}

func TestListen(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "box.example:0"} {
		if l, err := Listen(address, nil); !errors.Is(err, ErrNotLoopback) {
			t.Errorf("Listen(%s) without TLS = %v, %v", address, l, err)
		}
	}
	l, err := Listen("127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = Listen(l.Addr().String(), nil)
	if !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), l.Addr().String()) || !strings.Contains(err.Error(), "--listen") {
		t.Errorf("second Listen = %v, want the address and what to do", err)
	}
}

func TestListenerLimit(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &limited{Listener: inner, free: make(chan struct{}, 1), closed: make(chan struct{})}
	accepted := make(chan net.Conn)
	ended := make(chan error, 1)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				ended <- err
				return
			}
			accepted <- c
		}
	}()
	for range 2 {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	first := <-accepted
	select {
	case <-accepted:
		t.Fatal("a second connection was accepted past the limit")
	default:
	}
	first.Close()
	first.Close() // frees its place once
	<-accepted
	l.Close() // wakes an Accept that waits for a place
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept after Close = %v", err)
	}
}

func TestCloseEndsSocketsAndCalls(t *testing.T) {
	f := newFixture(t)
	entered := make(chan string, 2)
	var ended []string
	done := make(chan string, 2)
	f.opts.Socket = func(ctx context.Context, w http.ResponseWriter, _ *http.Request, _ *auth.Token) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		entered <- "socket"
		<-ctx.Done()
		done <- "socket"
	}
	f.opts.Post = func(ctx context.Context, _ auth.Token, _ []byte) (int, []byte, func()) {
		entered <- "call"
		<-ctx.Done()
		done <- "call"
		return http.StatusOK, nil, func() {}
	}
	s := f.server(t)
	l, err := Listen("127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	for _, r := range []struct{ method, upgrade string }{{"GET", "websocket"}, {"POST", ""}} {
		req, err := http.NewRequest(r.method, "http://"+l.Addr().String()+"/rpc", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+f.bearer)
		req.Header.Set("Content-Type", "application/json")
		if r.upgrade != "" {
			req.Header.Set("Upgrade", r.upgrade)
			req.Header.Set("Connection", "Upgrade")
		}
		go func() {
			if resp, err := http.DefaultClient.Do(req); err == nil {
				resp.Body.Close()
			}
		}()
		<-entered
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Errorf("Close = %v", err)
	}
	for range 2 {
		select {
		case name := <-done:
			ended = append(ended, name)
		default:
		}
	}
	if len(ended) != 2 {
		t.Errorf("after Close only %v ended, want the socket and the call", ended)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve = %v", err)
	}
}
