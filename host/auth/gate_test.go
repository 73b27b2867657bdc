package auth

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestGate(t *testing.T) {
	tokens := openTokens(t, newMemory(), nil)
	good, made, err := tokens.Create("bot", Scopes(Ask))
	if err != nil {
		t.Fatal(err)
	}
	const (
		get  = http.MethodGet
		post = http.MethodPost
		ext  = "chrome-extension://abcdefghijklmnop"
	)
	bearer := "Bearer " + good
	for _, tc := range []struct {
		name   string
		method string
		host   string
		origin string // "" = the header is missing
		auth   string
		fetch  [2]string // Sec-Fetch-Site, Sec-Fetch-Mode
		need   Need
		want   int // 0 = admitted
		token  bool
	}{
		{name: "page over localhost", method: get, host: "localhost:7331", need: Public},
		{name: "page over 127.0.0.1", method: get, host: "127.0.0.1:7331", need: Public},
		{name: "page over ::1", method: get, host: "[::1]:7331", need: Public},
		{name: "host without port", method: get, host: "localhost", need: Public},
		{name: "host in capitals", method: get, host: "LocalHost:7331", need: Public},
		{name: "tunnel on another port", method: get, host: "localhost:9000", need: Public},
		{name: "configured host", method: get, host: "box.example:7331", need: Public},
		{name: "link from elsewhere to the page", method: get, host: "localhost:7331", fetch: [2]string{"cross-site", "navigate"}, need: Public},

		{name: "rebound name", method: get, host: "evil.example:7331", need: Public, want: 421},
		{name: "rebound name with own origin", method: get, host: "evil.example:7331", origin: "http://evil.example:7331", need: Socket, want: 421},
		{name: "rebound name with a token", method: post, host: "evil.example:7331", auth: bearer, need: Bearer, want: 421},
		{name: "name that starts like loopback", method: get, host: "localhost.evil.example:7331", need: Public, want: 421},
		{name: "name that ends like loopback", method: get, host: "evil-localhost:7331", need: Public, want: 421},
		{name: "other loopback address", method: get, host: "127.0.0.2:7331", need: Public, want: 421},
		{name: "unspecified address", method: get, host: "0.0.0.0:7331", need: Public, want: 421},
		{name: "no host", method: get, host: "", need: Public, want: 421},
		{name: "malformed host", method: get, host: "localhost:7331:1", need: Public, want: 421},

		{name: "socket of the page", method: get, host: "localhost:7331", origin: "http://localhost:7331", need: Socket},
		{name: "socket of the page over ::1", method: get, host: "[::1]:7331", origin: "http://[::1]:7331", need: Socket},
		{name: "socket behind a TLS proxy", method: get, host: "box.example", origin: "https://box.example", need: Socket},
		{name: "socket of the extension", method: get, host: "localhost:7331", origin: ext, need: Socket},
		{name: "socket of the page with bearer", method: get, host: "localhost:7331", origin: "http://localhost:7331", auth: bearer, need: Socket, token: true},
		{name: "socket of a program with bearer", method: get, host: "localhost:7331", auth: bearer, need: Socket, token: true},
		{name: "socket of a program without bearer", method: get, host: "localhost:7331", need: Socket, want: 403},
		{name: "socket of a program with a bad bearer", method: get, host: "localhost:7331", auth: "Bearer nope", need: Socket, want: 401},
		{name: "socket, null origin", method: get, host: "localhost:7331", origin: "null", need: Socket, want: 403},
		{name: "socket, null origin with bearer", method: get, host: "localhost:7331", origin: "null", auth: bearer, need: Socket, want: 403},
		{name: "socket, other site", method: get, host: "localhost:7331", origin: "https://evil.example", need: Socket, want: 403},
		{name: "socket, other port of localhost", method: get, host: "localhost:7331", origin: "http://localhost:3000", need: Socket, want: 403},
		{name: "socket, other loopback name", method: get, host: "127.0.0.1:7331", origin: "http://localhost:7331", need: Socket, want: 403},
		{name: "socket, other extension", method: get, host: "localhost:7331", origin: "chrome-extension://zzzz", need: Socket, want: 403},
		{name: "socket, origin with a path", method: get, host: "localhost:7331", origin: "http://localhost:7331/x", need: Socket, want: 403},
		{name: "socket, origin with a user", method: get, host: "localhost:7331", origin: "http://u@localhost:7331", need: Socket, want: 403},
		{name: "socket, file origin", method: get, host: "localhost:7331", origin: "file://localhost:7331", need: Socket, want: 403},

		{name: "post of a program", method: post, host: "localhost:7331", auth: bearer, need: Bearer, token: true},
		{name: "post of the page", method: post, host: "localhost:7331", origin: "http://localhost:7331", auth: bearer, need: Bearer, token: true},
		{name: "post without token", method: post, host: "localhost:7331", origin: "http://localhost:7331", need: Bearer, want: 401},
		{name: "post, basic authorization", method: post, host: "localhost:7331", origin: "http://localhost:7331", auth: "Basic " + good, need: Bearer, want: 401},
		{name: "post, other site with token", method: post, host: "localhost:7331", origin: "https://evil.example", auth: bearer, need: Bearer, want: 403},
		{name: "login of the page", method: post, host: "localhost:7331", origin: "http://localhost:7331", need: Public},
		{name: "login without origin", method: post, host: "localhost:7331", need: Public, want: 403},
		{name: "login from another site", method: post, host: "localhost:7331", origin: "https://evil.example", need: Public, want: 403},

		{name: "image on another site", method: get, host: "localhost:7331", fetch: [2]string{"cross-site", "no-cors"}, need: Public, want: 403},
		{name: "fetch from another port", method: get, host: "localhost:7331", fetch: [2]string{"same-site", "no-cors"}, need: Public, want: 403},
		{name: "asset of the page", method: get, host: "localhost:7331", fetch: [2]string{"same-origin", "cors"}, need: Public},
	} {
		t.Run(tc.name, func(t *testing.T) {
			gate := &Gate{Tokens: tokens, Hosts: []string{"box.example"}, Origins: []string{ext}}
			r := httptest.NewRequest(tc.method, "/", nil)
			r.Host = tc.host
			for key, value := range map[string]string{"Origin": tc.origin, "Authorization": tc.auth, "Sec-Fetch-Site": tc.fetch[0], "Sec-Fetch-Mode": tc.fetch[1]} {
				if value != "" {
					r.Header.Set(key, value)
				}
			}
			token, err := gate.Admit(r, tc.need)
			status := 0
			var refusal *Refusal
			if errors.As(err, &refusal) {
				status = refusal.Status
			} else if err != nil {
				t.Fatalf("Admit = %v, want a *Refusal", err)
			}
			if status != tc.want {
				t.Errorf("refused with %d (%v), want %d", status, err, tc.want)
			}
			if got := token != nil; got != tc.token {
				t.Errorf("token %v, want one: %v", token, tc.token)
			} else if got && token.ID != made.ID {
				t.Errorf("token %s, want %s", token.ID, made.ID)
			}
		})
	}
}

func TestGateTwoOrigins(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Host = "localhost:7331"
	r.Header["Origin"] = []string{"http://localhost:7331", "https://evil.example"}
	if _, err := (&Gate{}).Admit(r, Socket); err == nil {
		t.Error("a request with two origins was admitted")
	}
}
