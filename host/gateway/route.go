package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"meanwhile/host/jsonrpc"
)

const methodSettle = "remote/settle"

func missingScope(method, scope string) *Error {
	return &Error{
		Code: CodeMissingScope, Field: scope,
		Message: fmt.Sprintf("%s needs a token with scope %q", method, scope),
	}
}

// dispatch runs a route. A nil send is a request that cannot take items.
func (g *Gateway) dispatch(ctx context.Context, c *Caller, method string, params json.RawMessage, send func(any) error) (any, error) {
	r, ok := g.routes[method]
	switch {
	case !ok:
		return nil, jsonrpc.Faultf(jsonrpc.CodeMethodNotFound, "no method %q", method)
	case !c.Scopes.Has(r.scope):
		return nil, missingScope(method, r.scope)
	case r.unary != nil:
		return r.unary(ctx, c, params)
	case send == nil:
		return nil, &Error{Code: CodeNeedsSocket, Message: method + " is a stream: call it over the WebSocket"}
	}
	if err := r.stream(ctx, c, params, send); err != nil {
		return nil, err
	}
	return struct{}{}, nil
}

// wire turns a route's error into what is sent; see Config.Wire.
func (g *Gateway) wire(err error) error {
	var fault *jsonrpc.Fault
	if err == nil || errors.As(err, &fault) {
		return err
	}
	if g.cfg.Wire != nil {
		if f := g.cfg.Wire(err); f != nil {
			return f
		}
	}
	var own *Error
	if !errors.As(err, &own) {
		return err
	}
	data, encErr := jsonrpc.Encode(struct {
		Code  string `json:"code"`
		Field string `json:"field,omitempty"`
	}{own.Code, own.Field})
	if encErr != nil {
		return err
	}
	return &jsonrpc.Fault{Code: jsonrpc.CodeApplication, Message: own.Message, Data: data}
}

// Post serves one call without a connection: a status and the response, which
// is JSON-RPC also when the status is not 200. The caller runs written once it
// has written the response whole.
func (g *Gateway) Post(ctx context.Context, p Principal, body []byte) (status int, response []byte, written func()) {
	var after []func()
	ctx = withWritten(ctx, func(f func()) { after = append(after, f) })
	status, response, handed := g.serve(ctx, p, body)
	return status, response, func() {
		if !handed {
			return // a refusal carries nothing
		}
		for _, f := range after {
			f()
		}
	}
}

// serve reports beside the response whether it is a result.
func (g *Gateway) serve(ctx context.Context, p Principal, body []byte) (status int, response []byte, handed bool) {
	m, err := jsonrpc.ParseMessage(body)
	var frame *jsonrpc.FrameError
	switch {
	case errors.As(err, &frame) && frame.Close == jsonrpc.CloseTooBig:
		return http.StatusRequestEntityTooLarge, jsonrpc.EncodeFault(jsonrpc.ID{}, jsonrpc.Faultf(jsonrpc.CodeInvalidRequest, "%s", err)), false
	case err != nil:
		return http.StatusBadRequest, jsonrpc.EncodeFault(jsonrpc.ID{}, jsonrpc.Faultf(jsonrpc.CodeParse, "%s", err)), false
	case m.Method == "" || m.ID.IsZero():
		return http.StatusBadRequest, jsonrpc.EncodeFault(m.ID, jsonrpc.Faultf(jsonrpc.CodeInvalidRequest, "send one call, with an id")), false
	}
	result, err := g.post(ctx, p, m)
	if err == nil {
		var raw json.RawMessage
		if raw, err = jsonrpc.Encode(result); err == nil {
			if response = jsonrpc.EncodeResult(m.ID, raw); len(response) <= jsonrpc.MaxFrame {
				return http.StatusOK, response, true
			}
			err = jsonrpc.Faultf(jsonrpc.CodeInternal, "result over %d bytes", jsonrpc.MaxFrame)
		}
	}
	status = http.StatusOK
	if own := (*Error)(nil); errors.As(err, &own) && own.Code == CodeStopping {
		status = http.StatusServiceUnavailable
	}
	var fault *jsonrpc.Fault
	if !errors.As(g.wire(err), &fault) {
		g.cfg.Log.Error("call failed", "method", m.Method, "err", err)
		fault = jsonrpc.Faultf(jsonrpc.CodeInternal, "internal error")
	}
	return status, jsonrpc.EncodeFault(m.ID, fault), false
}

func (g *Gateway) post(ctx context.Context, p Principal, m *jsonrpc.Message) (any, error) {
	switch m.Method {
	case methodInit:
		return nil, jsonrpc.Faultf(jsonrpc.CodeInvalidRequest, "initialize belongs to a WebSocket: a request needs none")
	case methodPing:
		return struct {
			Time int64 `json:"time"`
		}{time.Now().UnixMilli()}, nil
	}
	ctx, end := g.begin(ctx, p.TokenID)
	defer end()
	c := &Caller{Label: p.Label, TokenID: p.TokenID, Scopes: p.Scopes, Done: ctx.Done()}
	result, err := g.dispatch(ctx, c, m.Method, m.Params, nil)
	var why *Error
	switch {
	case ctx.Err() == nil:
		return result, err
	case errors.As(context.Cause(ctx), &why):
		return nil, why // what it was about to hand over stays here
	case err != nil:
		// Whoever left does not read it: the one that does was cut by the server.
		return nil, &Error{Code: CodeStopping, Message: "the host is stopping: call again when it is back"}
	}
	return result, nil
}

// begin counts a posted call, so that it ends with its token. end forgets it.
func (g *Gateway) begin(ctx context.Context, tokenID string) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	c := &posted{tokenID, cancel}
	g.update(func(s *state) { s.posted[c] = struct{}{} })
	if g.cfg.Live != nil && !g.cfg.Live(tokenID) {
		cancel(errRevoked())
	}
	return ctx, func() {
		g.update(func(s *state) { delete(s.posted, c) })
		cancel(nil)
	}
}

func errRevoked() *Error { return &Error{Code: CodeBadToken, Message: "the token was revoked"} }
