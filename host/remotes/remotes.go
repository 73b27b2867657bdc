package remotes

import (
	"context"
	"encoding/json"
	"io"

	"meanwhile/host/agent"
	"meanwhile/host/auth"
	"meanwhile/host/gateway"
	"meanwhile/host/jsonrpc"
	"meanwhile/host/notify"
	"meanwhile/host/outside"
	"meanwhile/host/question"
	"meanwhile/host/session"
)

// Scopes of the wire.
const (
	read   = "read"
	answer = "answer"
	ask    = "ask"
	admin  = "admin"
)

// none is the result of a call that has nothing to say.
type none struct{}

// Options are the owners that methods are bound to. All are needed.
type Options struct {
	Sessions  *session.Store
	Agents    *agent.Registry
	Questions *question.Service
	Outside   *outside.Service
	Tokens    *auth.Tokens
	Codes     *auth.Codes
	Notify    *notify.Service
	// Backup writes everything the host holds, as it is at one instant.
	Backup func(ctx context.Context, w io.Writer) error
	// LoginURL is the link that signs a browser in with a code.
	LoginURL func(code string) string
}

// Bind adds every method to the gateway.
func Bind(g *gateway.Gateway, o Options) {
	bindSessions(g, o)
	bindQuestions(g, o)
	bindOutside(g, o)
	bindTokens(g, o)
	bindBackup(g, o)
	bindNotify(g, o)
}

// unary is a route whose params are decoded strictly.
func unary[P, R any](g *gateway.Gateway, method, scope string, f func(ctx context.Context, c *gateway.Caller, p P) (R, error)) {
	g.Handle(method, scope, func(ctx context.Context, c *gateway.Caller, raw json.RawMessage) (any, error) {
		var p P
		if err := jsonrpc.Params(raw, &p); err != nil {
			return nil, err
		}
		return f(ctx, c, p)
	})
}

// stream is unary with items.
func stream[P any](g *gateway.Gateway, method, scope string, f func(ctx context.Context, c *gateway.Caller, p P, send func(any) error) error) {
	g.Stream(method, scope, func(ctx context.Context, c *gateway.Caller, raw json.RawMessage, send func(any) error) error {
		var p P
		if err := jsonrpc.Params(raw, &p); err != nil {
			return err
		}
		return f(ctx, c, p, send)
	})
}
