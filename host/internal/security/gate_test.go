package security

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"meanwhile/host/auth"
	"meanwhile/host/config"
	"meanwhile/host/internal/hosttest"
)

// door is what the rules say of one path and method.
type door struct {
	path    string // as the host lists it
	try     string // what is requested; "" = path
	methods []string
	need    auth.Need
	scope   string // asked for by the door itself
	spends  bool   // a request that is let in uses up its token
}

// doors lists every path but those of the page and the API's documents, which
// are all alike.
func doors() []door {
	get, post := []string{"GET", "HEAD"}, []string{"POST"}
	return []door{
		{path: "/healthz", methods: get},
		{path: "/readyz", methods: get},
		{path: "/metrics", methods: []string{"GET"}, need: auth.Bearer, scope: "read"},
		{path: "/auth/login", methods: post},
		{path: "/auth/logout", methods: post, need: auth.Bearer, spends: true},
		{path: "/rpc", methods: []string{"GET"}, need: auth.Socket},
		{path: "/rpc", methods: post, need: auth.Bearer},
		{path: "/mcp", methods: post, need: auth.Bearer, scope: "ask"},
		{path: "/api/v1/", try: "/api/v1/nothing", methods: []string{"GET", "POST", "DELETE"}, need: auth.Bearer},
	}
}

// public tells the paths that anyone may read.
func public(path string) bool {
	return path == "/" || path == "/client.wasm" || strings.HasPrefix(path, "/assets/") ||
		path == "/api/v1/openapi.json" || strings.HasPrefix(path, "/api/v1/schemas/") ||
		strings.Count(path, "/") == 1 && slices.Contains([]string{"html", "webmanifest", "svg", "png", "ico", "txt", "js"}, path[strings.LastIndex(path, ".")+1:])
}

const extension = "chrome-extension://abcdefghijklmnopabcdefghijklmnop"

// visitor is one way to come.
type visitor struct {
	name    string
	host    string   // $ is the host's own port
	origins []string // as host
	refused bool     // by Host or Origin
}

func hosts() []visitor {
	return []visitor{
		{name: "own address", host: "127.0.0.1:$"},
		{name: "localhost", host: "localhost:$"},
		{name: "upper case", host: "LOCALHOST:$"},
		{name: "IPv6", host: "[::1]:$"},
		{name: "configured", host: "box.example"},
		{name: "rebound name", host: "evil.example:$", refused: true},
		{name: "name that begins like ours", host: "127.0.0.1.evil.example:$", refused: true},
		{name: "name that ends like ours", host: "notlocalhost:$", refused: true},
		{name: "subdomain", host: "a.localhost:$", refused: true},
		{name: "another address", host: "0.0.0.0:$", refused: true},
		{name: "address in another spelling", host: "127.1:$", refused: true},
	}
}

func origins() []visitor {
	return []visitor{
		{name: "none"},
		{name: "own", origins: []string{"http://127.0.0.1:$"}},
		{name: "configured extension", origins: []string{extension}},
		{name: "null", origins: []string{"null"}, refused: true},
		{name: "empty", origins: []string{""}, refused: true},
		{name: "another site", origins: []string{"https://evil.example"}, refused: true},
		{name: "another port", origins: []string{"http://127.0.0.1:1"}, refused: true},
		{name: "own by name", origins: []string{"http://localhost:$"}},
		{name: "another extension", origins: []string{"chrome-extension://ponmlkjihgfedcbaponmlkjihgfedcba"}, refused: true},
		{name: "own with a user", origins: []string{"http://a@127.0.0.1:$"}, refused: true},
		{name: "own with a path", origins: []string{"http://127.0.0.1:$/x"}, refused: true},
		{name: "own by another scheme", origins: []string{"ftp://127.0.0.1:$"}, refused: true},
		{name: "two", origins: []string{"http://127.0.0.1:$", "http://127.0.0.1:$"}, refused: true},
	}
}

// site is a host under test with a token of each kind.
type site struct {
	*hosttest.Host
	t      *testing.T
	port   string
	tokens map[string]string // by scopes; "none" has none, "bad" is no token
	client *http.Client
}

func newSite(t *testing.T) *site {
	t.Helper()
	h := hosttest.Start(t, hosttest.Options{Change: func(c *config.Config) {
		c.HTTP.Hosts, c.HTTP.Origins = []string{"box.example"}, []string{extension}
	}})
	s := &site{Host: h, t: t, client: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(s.client.CloseIdleConnections)
	address := h.App().Address().String()
	s.port = address[strings.LastIndex(address, ":")+1:]
	s.tokens = map[string]string{"none": "", "bad": "mwt_" + strings.Repeat("0", 16) + "_" + strings.Repeat("0", 64)}
	for _, scope := range []string{"read", "answer", "ask", "admin"} {
		s.tokens[scope], _ = h.Token(scope, scope)
	}
	revoked, id := h.Token("revoked", "read", "answer", "admin")
	h.Local().Call("token/revoke", map[string]any{"id": id}, nil)
	s.tokens["revoked"] = revoked
	return s
}

func (s *site) own(text string) string { return strings.ReplaceAll(text, "$", s.port) }

// request asks and returns the status, the headers and the body.
func (s *site) request(method, path, host string, origins []string, token string) *http.Response {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.URL(path), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Host = s.own(host)
	for _, o := range origins {
		r.Header["Origin"] = append(r.Header["Origin"], s.own(o))
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := s.client.Do(r)
	if err != nil {
		s.t.Fatalf("%s %s as %s: %v", method, path, host, err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		s.t.Fatal(err)
	}
	return resp
}

// want is the status of a refusal, 0 for a request that is let in.
func (d door) want(host, origin visitor, tokenKind, method string) int {
	bearer := tokenKind != "none"
	dead := tokenKind == "bad" || tokenKind == "revoked"
	switch {
	case host.refused:
		return http.StatusMisdirectedRequest
	case origin.refused:
		return http.StatusForbidden
	case origin.name == "own" && host.host != "127.0.0.1:$", origin.name == "own by name" && !strings.EqualFold(host.host, "localhost:$"):
		return http.StatusForbidden // a page of ours by another name is another origin
	case len(origin.origins) == 0 && !bearer && (d.need == auth.Socket || method != "GET" && method != "HEAD"):
		return http.StatusForbidden // a program shows a token
	case d.need == auth.Bearer && (!bearer || dead):
		return http.StatusUnauthorized
	case d.need == auth.Socket && dead:
		return http.StatusUnauthorized
	case !slices.Contains(d.methods, method):
		return http.StatusMethodNotAllowed
	case d.scope != "" && d.scope != tokenKind:
		return http.StatusForbidden
	}
	return 0
}

func TestEveryDoor(t *testing.T) {
	s := newSite(t)
	table := doors()
	statics := 0
	for _, route := range s.App().Routes() {
		known := slices.ContainsFunc(table, func(d door) bool {
			return d.path == route.Path && d.need == route.Need && slices.Equal(d.methods, route.Methods)
		})
		switch {
		case known:
		case public(route.Path) && route.Need == auth.Public && slices.Equal(route.Methods, []string{"GET", "HEAD"}):
			if statics++; statics <= 3 {
				table = append(table, door{path: route.Path, methods: route.Methods})
			}
		default:
			t.Errorf("the host serves %v %s (need %d): it needs a row here that says who may", route.Methods, route.Path, route.Need)
		}
	}
	table = append(table, door{path: "/no/such/path", methods: []string{"GET", "HEAD"}})

	requests := 0
	for _, d := range table {
		path := d.path
		if d.try != "" {
			path = d.try
		}
		for _, host := range hosts() {
			for _, origin := range origins() {
				if host.refused && origin.name != "none" && origin.name != "own" {
					continue // Host comes first; two origins prove it
				}
				for _, kind := range []string{"none", "bad", "revoked", "read", "answer", "ask", "admin"} {
					for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"} {
						if d.path == "/rpc" && (d.need == auth.Bearer) != (method == "POST") {
							continue // the other door of this path
						}
						if d.path == "/rpc" && method != "POST" {
							d.methods = []string{"GET"}
						}
						token := s.tokens[kind]
						want := d.want(host, origin, kind, method)
						if d.spends && want == 0 {
							token, _ = s.Token("spent", kind)
						}
						resp := s.request(method, path, host.host, origin.origins, token)
						requests++
						where := fmt.Sprintf("%s %s, host %s, origin %s, token %s", method, d.path, host.name, origin.name, kind)
						s.checkStatus(where, resp.StatusCode, want)
						shared := ""
						if origin.name == "configured extension" {
							shared = extension
						}
						checkHeaders(t, where, resp.Header, shared)
						if t.Failed() {
							return
						}
					}
				}
			}
		}
	}
	t.Logf("%d requests at %d doors", requests, len(table))
}

func (s *site) checkStatus(where string, got, want int) {
	s.t.Helper()
	refusals := []int{http.StatusMisdirectedRequest, http.StatusForbidden, http.StatusUnauthorized, http.StatusMethodNotAllowed}
	switch {
	case want != 0 && got != want:
		s.t.Errorf("%s: status %d, want %d", where, got, want)
	case want == 0 && slices.Contains(refusals, got):
		// An empty login is no code.
		if got == http.StatusUnauthorized && strings.Contains(where, "/auth/login") {
			return
		}
		s.t.Errorf("%s: refused with %d, should be let in", where, got)
	case got >= 500 && got != http.StatusServiceUnavailable:
		s.t.Errorf("%s: status %d", where, got)
	}
}

// checkHeaders wants on every response what keeps hostile text inert, and that
// no page may read it but one of the origin it is shared with.
func checkHeaders(t *testing.T, where string, h http.Header, shared string) {
	t.Helper()
	resource := "same-origin"
	if shared != "" {
		resource = "cross-origin"
	}
	csp := map[string]string{}
	for part := range strings.SplitSeq(h.Get("Content-Security-Policy"), ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), " ")
		csp[name] = value
	}
	for name, value := range map[string]string{
		"default-src": "'none'", "script-src": "'self' 'wasm-unsafe-eval'", "connect-src": "'self'", "style-src": "'self'",
		"base-uri": "'none'", "frame-ancestors": "'none'", "form-action": "'none'",
	} {
		if csp[name] != value {
			t.Errorf("%s: policy %s is %q, want %q", where, name, csp[name], value)
		}
	}
	for name, value := range csp {
		if strings.Contains(value, "unsafe-inline") || strings.Contains(value, "'unsafe-eval'") || strings.Contains(value, "*") || strings.Contains(value, "http") {
			t.Errorf("%s: policy %s allows %q", where, name, value)
		}
	}
	for name, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": resource,
	} {
		if got := h.Get(name); got != want {
			t.Errorf("%s: %s is %q, want %q", where, name, got, want)
		}
	}
	if got := h.Values("Access-Control-Allow-Origin"); strings.Join(got, " ") != shared {
		t.Errorf("%s: shared with %q, want %q", where, got, shared)
	}
	for _, never := range []string{"Access-Control-Allow-Credentials", "Set-Cookie", "Server"} {
		if got := h.Get(never); got != "" {
			t.Errorf("%s: %s is %q", where, never, got)
		}
	}
	if h.Get("Cache-Control") == "" {
		t.Errorf("%s: no Cache-Control", where)
	}
}

// Browsers ask before a page of another origin sends a token: only a configured
// origin hears yes, by whatever name the host is reached.
func TestPreflight(t *testing.T) {
	s := newSite(t)
	for _, d := range doors() {
		for _, host := range hosts() {
			for _, origin := range origins() {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodOptions, s.URL(d.path), nil)
				if err != nil {
					t.Fatal(err)
				}
				r.Host = s.own(host.host)
				for _, o := range origin.origins {
					r.Header["Origin"] = append(r.Header["Origin"], s.own(o))
				}
				r.Header.Set("Access-Control-Request-Method", d.methods[0])
				r.Header.Set("Access-Control-Request-Headers", "authorization")
				resp, err := s.client.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				yes := resp.StatusCode < 300 && resp.Header.Get("Access-Control-Allow-Methods") != ""
				if want := origin.name == "configured extension" && !host.refused; yes != want {
					t.Errorf("%s, host %s, origin %s: status %d, allowed %v, want %v", d.path, host.name, origin.name, resp.StatusCode, yes, want)
				}
			}
		}
	}
}
