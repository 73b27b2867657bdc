package auth

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Need says what a route asks of a request beside Host and Origin.
type Need uint8

// The needs of routes.
const (
	Public Need = iota // static files, health, logging in
	Bearer             // a live token in the Authorization header
	Socket             // a WebSocket handshake: a token there, or later in initialize
)

// Refusal is a request that was not admitted.
type Refusal struct {
	Status int
	Reason string
}

func (r *Refusal) Error() string { return r.Reason }

// Gate admits HTTP requests. Its fields are read only.
type Gate struct {
	Tokens  *Tokens
	Hosts   []string // further host names (host or host:port), beside the loopback names
	Origins []string // further exact origins, such as an extension's; "null" is never one
}

// Admit checks Host, Origin and token in this order. The token is nil when the
// request carried none and the route does not insist.
func (g *Gate) Admit(r *http.Request, need Need) (*Token, error) {
	if !g.hostAllowed(r.Host) {
		return nil, &Refusal{http.StatusMisdirectedRequest, fmt.Sprintf("this host does not answer for %q: use localhost, 127.0.0.1, [::1] or a name set as http.hosts", r.Host)}
	}
	bearer, hasBearer := bearerOf(r)
	if err := g.checkOrigin(r, need, hasBearer); err != nil {
		return nil, err
	}
	if !hasBearer {
		if need == Bearer {
			return nil, &Refusal{http.StatusUnauthorized, "this route needs an Authorization: Bearer header with a token"}
		}
		return nil, nil
	}
	if need == Public {
		return nil, nil
	}
	token, err := g.Tokens.Verify(bearer)
	if err != nil {
		return nil, &Refusal{http.StatusUnauthorized, err.Error()}
	}
	return &token, nil
}

func (g *Gate) hostAllowed(hostport string) bool {
	name, _ := splitHost(hostport)
	switch name {
	case "localhost", "127.0.0.1", "::1":
		return true
	case "":
		return false
	}
	return slices.ContainsFunc(g.Hosts, func(allowed string) bool {
		return strings.EqualFold(allowed, hostport) || strings.EqualFold(allowed, name)
	})
}

func (g *Gate) checkOrigin(r *http.Request, need Need, hasBearer bool) error {
	foreign := &Refusal{http.StatusForbidden, "a page of another origin may not talk to this host"}
	origins := r.Header.Values("Origin")
	switch {
	case len(origins) > 1:
		return foreign
	case len(origins) == 1:
		if !g.originAllowed(origins[0], r) {
			return foreign
		}
		return nil
	case need == Socket || (r.Method != http.MethodGet && r.Method != http.MethodHead):
		if !hasBearer {
			return &Refusal{http.StatusForbidden, "a request without Origin comes from a program, which must send a bearer token"}
		}
	}
	// Same-site is not enough: another port of localhost is another program.
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return nil
	}
	if need == Public && r.Header.Get("Sec-Fetch-Mode") == "navigate" {
		return nil // a link to the page; what it may do is settled by its own requests
	}
	return foreign
}

// Listed tells whether the origin is one of the configured ones: a page there may
// read what this host answers.
func (g *Gate) Listed(origin string) bool {
	return origin != "" && origin != "null" && slices.Contains(g.Origins, origin)
}

func (g *Gate) originAllowed(origin string, r *http.Request) bool {
	if origin == "" || origin == "null" {
		return false
	}
	if g.Listed(origin) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
		return false
	}
	// Behind a proxy that ends TLS the page is https while this hop is http,
	// so the scheme proves nothing here; the name and port do.
	if u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	originName, originPort := splitHost(u.Host)
	name, port := splitHost(r.Host)
	return originName == name && portOf(originPort, u.Scheme) == portOf(port, u.Scheme)
}

func portOf(port, scheme string) string {
	switch {
	case port != "":
		return port
	case scheme == "https":
		return "443"
	}
	return "80"
}

// splitHost takes host[:port] apart; the name is lower case and without
// brackets, and empty when the whole is malformed.
func splitHost(hostport string) (name, port string) {
	name = hostport
	if h, p, err := net.SplitHostPort(hostport); err == nil {
		name, port = h, p
	} else if inner, ok := strings.CutPrefix(hostport, "["); ok && strings.HasSuffix(inner, "]") {
		name = strings.TrimSuffix(inner, "]")
	} else if strings.ContainsAny(hostport, ":[]") {
		return "", ""
	}
	return strings.ToLower(name), port
}

func bearerOf(r *http.Request) (string, bool) {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return "", false
	}
	scheme, text, ok := strings.Cut(values[0], " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") || text == "" {
		return "", false
	}
	return text, true
}
