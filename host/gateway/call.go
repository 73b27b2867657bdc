package gateway

import (
	"context"
	"encoding/json"
	"errors"

	"meanwhile/host/jsonrpc"
)

// Call makes one unary call for a caller inside this process, as Post does for
// a body: the same decoding, scopes and codes. A refusal is a *jsonrpc.Error, as
// a peer would get it. written must run once the response that carries the
// result went out whole; a caller that cannot tell leaves it.
func (g *Gateway) Call(ctx context.Context, p Principal, method string, params, result any) (written func(), err error) {
	raw, err := jsonrpc.Encode(params)
	if err != nil {
		return nil, err
	}
	var after []func()
	ctx = withWritten(ctx, func(f func()) { after = append(after, f) })
	out, err := g.post(ctx, p, &jsonrpc.Message{Method: method, Params: raw})
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		var fault *jsonrpc.Fault
		if !errors.As(g.wire(err), &fault) {
			g.cfg.Log.Error("call failed", "method", method, "err", err)
			fault = jsonrpc.Faultf(jsonrpc.CodeInternal, "internal error")
		}
		return nil, &jsonrpc.Error{Code: fault.Code, Message: fault.Message, Data: fault.Data}
	}
	raw, err = jsonrpc.Encode(out)
	if err == nil && result != nil {
		err = json.Unmarshal(raw, result)
	}
	return func() {
		for _, f := range after {
			f()
		}
	}, err
}
