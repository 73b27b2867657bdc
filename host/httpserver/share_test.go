package httpserver

import (
	"net/http/httptest"
	"strings"
	"testing"
)

func TestConfiguredOriginReads(t *testing.T) {
	const listed, other = "chrome-extension://abcdefghijklmnopabcdefghijklmnop", "https://evil.example"
	f := newFixture(t)
	f.opts.Gate.Origins = []string{listed}
	h := f.server(t).Handler()
	for _, tc := range []struct {
		name, method, path, origin, ask string
		status                          int
		allowed                         bool
	}{
		{name: "file for a listed page", method: "GET", path: "/client.wasm", origin: listed, status: 200, allowed: true},
		{name: "file for another page", method: "GET", path: "/client.wasm", origin: other, status: 403},
		{name: "file for nobody", method: "GET", path: "/client.wasm", status: 200},
		{name: "question before a login", method: "OPTIONS", path: "/auth/login", origin: listed, ask: "POST", status: 204, allowed: true},
		{name: "question before a call, which needs a token itself", method: "OPTIONS", path: "/rpc", origin: listed, ask: "POST", status: 204, allowed: true},
		{name: "question of another page", method: "OPTIONS", path: "/auth/login", origin: other, ask: "POST", status: 403},
		{name: "question of the host's own page needs no answer", method: "OPTIONS", path: "/auth/login", origin: "http://127.0.0.1:7331", ask: "POST", status: 405},
		{name: "OPTIONS by itself", method: "OPTIONS", path: "/auth/login", origin: listed, status: 405, allowed: true},
		{name: "a listed page without a token", method: "POST", path: "/rpc", origin: listed, status: 401, allowed: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := request(tc.method, tc.path, "")
			if tc.origin != "" {
				r.Header.Set("Origin", tc.origin)
			}
			if tc.ask != "" {
				r.Header.Set("Access-Control-Request-Method", tc.ask)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			want := ""
			if tc.allowed {
				want = tc.origin
			}
			if got := w.Header().Get("Access-Control-Allow-Origin"); w.Code != tc.status || got != want {
				t.Errorf("%d, allowed for %q; want %d for %q", w.Code, got, tc.status, want)
			}
			if !strings.Contains(strings.Join(w.Header().Values("Vary"), ", "), "Origin") {
				t.Error("a cache could hand this answer to another origin")
			}
			if w.Header().Get("Access-Control-Allow-Credentials") != "" {
				t.Error("credentials are allowed")
			}
		})
	}
}
