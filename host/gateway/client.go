package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"meanwhile/host/jsonrpc"
)

const (
	methodInit    = "initialize"
	methodPing    = "ping"
	methodSettled = "remote/settled"
	methodSynced  = "remote/synced"
	// maxName bounds what a client calls itself, and its version.
	maxName = 200
)

// errStopping and errFull refuse a connection before its first message.
var (
	errStopping = &jsonrpc.CloseError{Code: jsonrpc.CloseGoingAway, Reason: "the host is stopping", Local: true}
	errFull     = &jsonrpc.CloseError{Code: jsonrpc.CloseSlow, Reason: "too many connections", Local: true}
)

// Accept serves one connection until it ends, and returns why it did. The
// principal is what the transport knows already (a cookie, a socket's file
// mode); with the zero one, initialize must bring a token. A token there
// replaces it.
func (g *Gateway) Accept(ctx context.Context, t jsonrpc.Transport, p Principal) error {
	var refused *jsonrpc.CloseError
	c := &client{id: g.cfg.NewID(), ready: make(chan struct{})}
	g.update(func(s *state) {
		switch {
		case s.closed:
			refused = errStopping
		case s.accepted >= g.cfg.MaxClients:
			refused = errFull
		default:
			s.accepted++
			s.lastNo++
			c.no = s.lastNo
			g.accepts.Add(1)
		}
	})
	if refused != nil {
		_ = t.Close(refused.Code, refused.Reason) // the refusal is the news
		return refused
	}
	defer g.accepts.Done()
	conn := jsonrpc.NewConn(t, g.handler(c, p), g.options(c))
	g.enter(c, conn)
	late := time.AfterFunc(g.cfg.InitTimeout, func() { g.initLate(c, conn) })
	defer late.Stop()
	select {
	case <-conn.Done():
	case <-ctx.Done():
		conn.Close(jsonrpc.CloseGoingAway, "the host is stopping")
	}
	g.leave(c, conn)
	conn.Wait()
	return conn.Err()
}

func (g *Gateway) options(c *client) jsonrpc.Options {
	o := g.cfg.Conn
	o.MaxCalls, o.Log = g.cfg.MaxCalls, g.cfg.Log
	o.Screen = func(r *jsonrpc.Request) error { return g.screen(c, r) }
	o.Pull = func() [][]byte {
		var out outgoing
		ok := false
		g.update(func(s *state) { out, ok = s.nextFor(c) })
		if !ok {
			return nil
		}
		return out.frames()
	}
	o.Reply = func(call string, result json.RawMessage, err *jsonrpc.Error) { g.reply(c, call, result, err) }
	return o
}

func (g *Gateway) enter(c *client, conn *jsonrpc.Conn) {
	closed := false
	g.update(func(s *state) {
		s.conns[conn] = c
		closed = s.closed
	})
	if closed { // since it was accepted
		conn.Close(errStopping.Code, errStopping.Reason)
	}
}

// leave takes the client out; its open deliveries end with it.
func (g *Gateway) leave(c *client, conn *jsonrpc.Conn) {
	var left []*Pending
	g.update(func(s *state) {
		s.accepted--
		delete(s.conns, conn)
		if c.stage == ready {
			for p := s.head; p != nil && p.seq <= c.passed; p = p.next {
				if p.ev.Left != nil && c.open(p) {
					left = append(left, p)
				}
			}
			s.clients = slices.DeleteFunc(s.clients, func(other *client) bool { return other == c })
		}
		c.stage, c.next, c.settled, c.told, c.again = gone, nil, nil, 0, nil
	})
	for _, p := range left {
		p.ev.Left(c.id)
	}
}

func (g *Gateway) initLate(c *client, conn *jsonrpc.Conn) {
	waiting := false
	g.update(func(*state) { waiting = c.stage == connected })
	if waiting {
		conn.Close(jsonrpc.ClosePolicy, fmt.Sprintf("no initialize within %s", g.cfg.InitTimeout))
	}
}

// screen holds a client to initialize first, and once. What comes behind it
// waits for its end in handler.
func (g *Gateway) screen(c *client, r *jsonrpc.Request) error {
	var err error
	g.update(func(*state) {
		isInit := r.Method == methodInit && r.IsCall()
		switch {
		case c.stage == connected && isInit:
			c.stage = initializing
		case c.stage == connected:
			err = errors.New("the first message must be initialize")
		case isInit:
			err = errors.New("initialize came twice")
		}
	})
	return err
}

func (g *Gateway) handler(c *client, p Principal) jsonrpc.HandlerFunc {
	return func(ctx context.Context, r *jsonrpc.Request) (any, error) {
		switch {
		case !r.IsCall():
			return nil, fmt.Errorf("no notification %q", r.Method) // not answered; logged by jsonrpc
		case r.Method == methodInit:
			return g.initialize(ctx, c, r, p)
		}
		select {
		case <-c.ready:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		result, err := g.dispatch(withWritten(ctx, r.OnWritten), &c.caller, r.Method, r.Params, func(item any) error { return r.Send(ctx, item) })
		return result, g.wire(err)
	}
}

type initParams struct {
	Protocol int `json:"protocol"`
	Client   struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	} `json:"client"`
	Token string `json:"token"`
}

type initResult struct {
	Protocol int    `json:"protocol"`
	ClientID string `json:"clientId"`
	Host     struct {
		Version string `json:"version"`
	} `json:"host"`
	Module Module `json:"module"`
	Scopes Scopes `json:"scopes"`
}

func (g *Gateway) initialize(ctx context.Context, c *client, r *jsonrpc.Request, p Principal) (any, error) {
	conn := r.Conn()
	// The refusal is said twice: in the answer, for whoever called, and in the
	// close code, for whoever reconnects.
	refuse := func(closeCode int, code, why string) (any, error) {
		r.AfterReply(func() { conn.Finish(closeCode, code+": "+why) })
		return nil, g.wire(&Error{Code: code, Message: why})
	}
	// Another protocol may have other params: its number is looked at first.
	var probe struct {
		Protocol json.RawMessage `json:"protocol"`
	}
	_ = json.Unmarshal(r.Params, &probe) // a bad form is refused below
	if probe.Protocol != nil && string(probe.Protocol) != strconv.Itoa(Protocol) {
		return refuse(CloseProtocol, CodeProtocol, fmt.Sprintf("this host speaks protocol %d", Protocol))
	}
	var in initParams
	err := jsonrpc.Params(r.Params, &in)
	switch {
	case err != nil:
	case in.Protocol != Protocol:
		err = jsonrpc.Faultf(jsonrpc.CodeInvalidParams, "invalid params: protocol is missing")
	case len(in.Client.Name) > maxName || len(in.Client.Version) > maxName:
		err = jsonrpc.Faultf(jsonrpc.CodeInvalidParams, "invalid params: client name or version over %d bytes", maxName)
	}
	if err != nil {
		r.AfterReply(func() { conn.Finish(jsonrpc.ClosePolicy, "initialize: invalid params") })
		return nil, err
	}
	if in.Token != "" {
		if p, err = g.authenticate(ctx, in.Token); err != nil {
			g.cfg.Log.Info("token refused", "client", in.Client.Name, "err", err)
			return refuse(CloseToken, CodeBadToken, "the token is not good")
		}
	} else if p.TokenID == "" && len(p.Scopes) == 0 {
		return refuse(CloseToken, CodeBadToken, "a token is needed")
	}
	c.caller = Caller{
		ClientID: c.id, Name: in.Client.Name, Label: p.Label, TokenID: p.TokenID, Scopes: p.Scopes, Done: conn.Done(),
	}
	r.AfterReply(func() { g.activate(c, conn) })
	out := initResult{Protocol: Protocol, ClientID: c.id, Module: g.cfg.Module, Scopes: slices.Clone(p.Scopes)}
	if out.Host.Version = g.cfg.Version; out.Scopes == nil {
		out.Scopes = Scopes{}
	}
	return out, nil
}

func (g *Gateway) authenticate(ctx context.Context, token string) (Principal, error) {
	if g.cfg.Auth == nil {
		return Principal{}, errors.New("this host takes no tokens here")
	}
	return g.cfg.Auth.Authenticate(ctx, token)
}

// activate makes the client ready once its initialize is answered: its
// deliveries start behind that answer.
func (g *Gateway) activate(c *client, conn *jsonrpc.Conn) {
	g.update(func(s *state) {
		if c.stage != initializing {
			return // gone meanwhile
		}
		c.stage, c.conn, c.next, c.syncAt = ready, conn, s.head, s.lastSeq
		// By number: connection order, whoever was initialized first.
		at, _ := slices.BinarySearchFunc(s.clients, c.no, func(x *client, no uint64) int { return cmp.Compare(x.no, no) })
		s.clients = slices.Insert(s.clients, at, c)
	})
	if g.cfg.Live != nil && !g.cfg.Live(c.caller.TokenID) {
		conn.Finish(CloseToken, CodeBadToken+": the token was revoked")
	}
	close(c.ready)
	conn.Wake()
}

// reply judges a client's response to a delivery.
func (g *Gateway) reply(c *client, call string, result json.RawMessage, rpcErr *jsonrpc.Error) {
	eventID, attempt, ok := parseWireID(call)
	if !ok {
		return
	}
	var p *Pending
	g.update(func(s *state) {
		p = s.byID[eventID]
		if p != nil && (!c.open(p) || p.mark(c.no).attempt != attempt) {
			p = nil
		}
	})
	if p == nil {
		return // too late, or ended before: dropped
	}
	who := Outcome{Client: c.id, ClientName: c.caller.Label, Result: result}
	_, refused := g.outcome(c, p, who, rpcErr, true)
	if refused == nil {
		return
	}
	g.update(func(s *state) {
		if p.phase != pending || !c.open(p) {
			return
		}
		m := p.mark(c.no)
		m.attempt++
		p.setMark(s, m)
		c.again = append(c.again, again{p: p, refused: refused})
	})
	c.conn.Wake()
}

type settleParams struct {
	EventID string          `json:"eventId"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`
}

type settleResult struct {
	Taken   bool     `json:"taken"`
	Refused *Refusal `json:"refused,omitempty"`
}

// settleRoute is remote/settle.
func (g *Gateway) settleRoute(_ context.Context, caller *Caller, params json.RawMessage) (any, error) {
	var in settleParams
	if err := jsonrpc.Params(params, &in); err != nil {
		return nil, err
	}
	if in.EventID == "" || (in.Result == nil) == (in.Error == nil) {
		return nil, jsonrpc.Faultf(jsonrpc.CodeInvalidParams, "invalid params: send eventId and one of result and error")
	}
	var rpcErr *jsonrpc.Error
	if in.Error != nil {
		var err error
		if rpcErr, err = jsonrpc.ParseError(in.Error); err != nil {
			return nil, jsonrpc.Faultf(jsonrpc.CodeInvalidParams, "invalid params: %s", err)
		}
	}
	var p *Pending
	var c *client
	g.update(func(s *state) { p, c = s.byID[in.EventID], s.client(caller.ClientID) })
	if p == nil {
		return settleResult{}, nil
	}
	if !caller.Scopes.Has(p.ev.Scope) {
		return nil, missingScope(methodSettle, p.ev.Scope)
	}
	who := Outcome{Client: caller.ClientID, ClientName: caller.Label, Result: in.Result}
	taken, refused := g.outcome(c, p, who, rpcErr, false)
	return settleResult{Taken: taken, Refused: refused}, nil
}
