package security

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"meanwhile/host/gateway/wsconn"
	"meanwhile/host/jsonrpc"
)

// handshake opens a WebSocket; an error is a refused upgrade.
func (s *site) handshake(host string, origins []string, bearer string) (jsonrpc.Transport, error) {
	s.t.Helper()
	header := http.Header{}
	if host != "" {
		header.Set("Host", s.own(host))
	}
	for _, o := range origins {
		header["Origin"] = append(header["Origin"], s.own(o))
	}
	if bearer != "" {
		header.Set("Authorization", "Bearer "+bearer)
	}
	return wsconn.Dial(s.t.Context(), "ws://"+s.App().Address().String()+"/rpc", wsconn.DialOptions{Header: header})
}

// A page of another site, or one whose name was rebound to this machine, opens
// no socket, with a token or without.
func TestHandshakes(t *testing.T) {
	s := newSite(t)
	for _, tc := range []struct {
		name    string
		host    string
		origins []string
		token   string
		open    bool
	}{
		{name: "the page", origins: []string{"http://127.0.0.1:$"}, open: true},
		{name: "the page by name", host: "localhost:$", origins: []string{"http://localhost:$"}, open: true},
		{name: "the page behind TLS", host: "box.example", origins: []string{"https://box.example"}, open: true},
		{name: "the extension", origins: []string{extension}, open: true},
		{name: "a program", token: "ask", open: true},
		{name: "the page with a token", origins: []string{"http://127.0.0.1:$"}, token: "read", open: true},
		{name: "a program without a token"},
		{name: "a program with a bad token", token: "bad"},
		{name: "a program with a revoked token", token: "revoked"},
		{name: "the page with a revoked token", origins: []string{"http://127.0.0.1:$"}, token: "revoked"},
		{name: "another site", origins: []string{"https://evil.example"}},
		{name: "another site with a token", origins: []string{"https://evil.example"}, token: "read"},
		{name: "a rebound name", host: "evil.example:$", origins: []string{"http://evil.example:$"}},
		{name: "a rebound name with a token", host: "evil.example:$", origins: []string{"http://evil.example:$"}, token: "read"},
		{name: "a rebound name that claims our origin", host: "evil.example:$", origins: []string{"http://127.0.0.1:$"}},
		{name: "null", origins: []string{"null"}},
		{name: "null with a token", origins: []string{"null"}, token: "read"},
		{name: "a file", origins: []string{"file://"}},
		{name: "another port of this machine", origins: []string{"http://127.0.0.1:1"}},
		{name: "another extension", origins: []string{"chrome-extension://ponmlkjihgfedcbaponmlkjihgfedcba"}},
		{name: "another browser's extension", origins: []string{"moz-extension://abcdefghijklmnopabcdefghijklmnop"}},
		{name: "an extension whose id begins with ours", origins: []string{extension + "a"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			transport, err := s.handshake(tc.host, tc.origins, s.tokens[tc.token])
			if err == nil {
				transport.Close(jsonrpc.CloseNormal, "")
			}
			if open := err == nil; open != tc.open {
				t.Errorf("open = %v (%v), want %v", open, err, tc.open)
			}
		})
	}
}

// An open socket does nothing before a good initialize.
func TestInitialize(t *testing.T) {
	s := newSite(t)
	hello := func(more map[string]any) map[string]any {
		params := map[string]any{"protocol": 1, "client": map[string]any{"name": "x", "version": "0"}}
		for k, v := range more {
			params[k] = v
		}
		return params
	}
	for _, tc := range []struct {
		name   string
		method string
		params map[string]any
		close  int // 0: any
	}{
		{"no token", "initialize", hello(nil), 4401},
		{"bad token", "initialize", hello(map[string]any{"token": s.tokens["bad"]}), 4401},
		{"revoked token", "initialize", hello(map[string]any{"token": s.tokens["revoked"]}), 4401},
		{"another protocol", "initialize", hello(map[string]any{"token": s.tokens["read"], "protocol": 2}), 4400},
		{"something else first", "host/follow", map[string]any{}, 0},
		{"a duplicate of the handshake's own right", "token/list", map[string]any{}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			transport, err := s.handshake("", []string{"http://127.0.0.1:$"}, "")
			if err != nil {
				t.Fatal(err)
			}
			conn := jsonrpc.NewConn(transport, nil, jsonrpc.Options{})
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if err := conn.Call(ctx, tc.method, tc.params, nil); err == nil {
				t.Error("the call was taken")
			}
			var closed *jsonrpc.CloseError
			conn.Wait()
			if err := conn.Err(); tc.close != 0 && (!errors.As(err, &closed) || closed.Code != tc.close) {
				t.Errorf("closed with %v, want %d", err, tc.close)
			}
			conn.Close(jsonrpc.CloseNormal, "")
		})
	}
}

// A token that is revoked ends what it opened.
func TestRevokedWhileConnected(t *testing.T) {
	s := newSite(t)
	text, id := s.Token("soon gone", "read")
	c := s.ConnectWith(text)
	s.Local().Call("token/revoke", map[string]any{"id": id}, nil)
	var closed *jsonrpc.CloseError
	c.Wait()
	if err := c.Err(); !errors.As(err, &closed) || closed.Code != 4401 {
		t.Errorf("closed with %v, want 4401", err)
	}
	if status, _ := s.Post(text, "ping", map[string]any{}); status != http.StatusUnauthorized {
		t.Errorf("POST with it: %d, want 401", status)
	}
}
