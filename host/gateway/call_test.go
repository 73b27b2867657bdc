package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"meanwhile/host/jsonrpc"
)

func TestCall(t *testing.T) {
	g := New(Config{})
	defer g.Close()
	wrote := 0
	g.Handle("double", "ask", func(ctx context.Context, c *Caller, params json.RawMessage) (any, error) {
		var p struct {
			N int `json:"n"`
		}
		if err := jsonrpc.Params(params, &p); err != nil {
			return nil, err
		}
		OnWritten(ctx, func() { wrote++ })
		return map[string]any{"n": 2 * p.N, "by": c.TokenID}, nil
	})
	me := Principal{TokenID: "tok", Scopes: Scopes{"ask"}}
	var out struct {
		N  int
		By string
	}
	written, err := g.Call(t.Context(), me, "double", map[string]int{"n": 4}, &out)
	if err != nil || out.N != 8 || out.By != "tok" {
		t.Fatalf("got %+v, %v", out, err)
	}
	if wrote != 0 {
		t.Error("told of a response before the caller had written it")
	}
	if written(); wrote != 1 {
		t.Errorf("told %d times, want once", wrote)
	}
	for _, tc := range []struct {
		name   string
		by     Principal
		method string
		params any
		code   int
	}{
		{"without the scope", Principal{Scopes: Scopes{"read"}}, "double", map[string]int{"n": 1}, jsonrpc.CodeApplication},
		{"an unknown member", me, "double", map[string]int{"m": 1}, jsonrpc.CodeInvalidParams},
		{"an unknown method", me, "triple", map[string]int{}, jsonrpc.CodeMethodNotFound},
	} {
		var said *jsonrpc.Error
		if _, err := g.Call(t.Context(), tc.by, tc.method, tc.params, nil); !errors.As(err, &said) || said.Code != tc.code {
			t.Errorf("%s: %v, want code %d", tc.name, err, tc.code)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	g.Handle("wait", "ask", func(ctx context.Context, _ *Caller, _ json.RawMessage) (any, error) {
		cancel()
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	if _, err := g.Call(ctx, me, "wait", map[string]int{}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that left: %v", err)
	}
}
