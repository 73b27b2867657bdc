package remotes

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"sync"
	"testing"

	"meanwhile/host/agent"
	"meanwhile/host/agent/agenttest"
	"meanwhile/host/agent/loop"
	"meanwhile/host/auth"
	"meanwhile/host/gateway"
	"meanwhile/host/jsonrpc"
	"meanwhile/host/llm"
	"meanwhile/host/outside"
	"meanwhile/host/question"
	"meanwhile/host/question/questiontest"
	"meanwhile/host/session/sessiontest"
	"meanwhile/host/tool"
	"meanwhile/host/tool/askuser"
)

// memory keeps tokens for one test.
type memory map[string][]byte

func (m memory) Put(k string, v []byte) error          { m[k] = v; return nil }
func (m memory) Delete(k string) error                 { delete(m, k); return nil }
func (m memory) Each(func(string, []byte) error) error { return nil }

// rig is every owner that the methods are bound to, over memory.
type rig struct {
	t       *testing.T
	gateway *gateway.Gateway
	options Options
	clients sync.WaitGroup
}

// newRig makes a host whose model, if any, plays these replies.
func newRig(t *testing.T, replies ...agenttest.Reply) *rig {
	t.Helper()
	r := &rig{t: t, gateway: gateway.New(gateway.Config{Version: "test", Wire: Wire, SettleScope: answer, Conn: jsonrpc.Options{PingEvery: -1}})}
	store := sessiontest.Open(t)
	tokens, err := auth.OpenTokens(memory{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var questions *question.Service
	agents := agent.NewRegistry(agent.Options{
		Open: store.Open,
		Attach: func(a *agent.Agent) (agent.Driver, error) {
			if a.Log().Header().External() {
				return agent.NewPassive(a), nil
			}
			return loop.New(a, loop.Options{
				Model: func(*agent.Agent) (loop.Model, error) {
					if replies == nil {
						return loop.Model{}, loop.ErrNoModel
					}
					return loop.Model{Provider: provider(replies), Name: "script"}, nil
				},
				Tools: func(a *agent.Agent) []tool.Tool {
					return []tool.Tool{askuser.New(questions, a, askuser.Options{Mode: askuser.Timed})}
				},
			})
		},
	})
	questions = question.New(question.Options{Emit: Emit(r.gateway), Validator: questiontest.Native{}, Agents: agents})
	header, err := agent.Header("outside", "outside", "", []tool.Spec{askuser.New(questions, nil, askuser.Options{Mode: askuser.Timed}).Spec()})
	if err != nil {
		t.Fatal(err)
	}
	r.options = Options{
		Sessions: store, Agents: agents, Questions: questions, Tokens: tokens, Codes: auth.NewCodes(tokens),
		Outside:  outside.New(outside.Options{Questions: questions, Agents: agents, Sessions: store, Header: header}),
		LoginURL: func(code string) string { return "http://host/#code=" + code },
	}
	Bind(r.gateway, r.options)
	tokens.OnRevoke(r.gateway.DropToken)
	t.Cleanup(func() {
		questions.Close()
		r.gateway.Close()
		r.options.Outside.Close()
		if err := agents.Close(context.Background()); err != nil {
			t.Errorf("close agents: %v", err)
		}
		r.clients.Wait()
	})
	return r
}

// provider gives each session its own run through the replies.
func provider(replies []agenttest.Reply) llm.Provider {
	return agenttest.Respond(func(_ int, req llm.Request) agenttest.Reply {
		n := 0
		for _, m := range req.Messages {
			if m.Role == llm.RoleAssistant {
				n++
			}
		}
		if n < len(replies) {
			return replies[n]
		}
		return agenttest.Say("nothing more")
	})
}

// connect greets the host as the holder of these scopes. onCall answers what
// the host calls; nil delegates.
func (r *rig) connect(label string, scopes auth.Scopes, onCall jsonrpc.HandlerFunc) *jsonrpc.Conn {
	r.t.Helper()
	return r.connectAs(Principal(auth.Token{ID: "id-" + label, Label: label, Scopes: scopes}), onCall)
}

func (r *rig) connectAs(p gateway.Principal, onCall jsonrpc.HandlerFunc) *jsonrpc.Conn {
	r.t.Helper()
	here, there := net.Pipe()
	r.clients.Go(func() {
		// Why a connection ended is the business of the gateway's tests.
		_ = r.gateway.Accept(context.Background(), jsonrpc.Lines(there), p)
	})
	if onCall == nil {
		onCall = func(_ context.Context, q *jsonrpc.Request) (any, error) {
			return nil, fault(gateway.CodeNext, "", "not here")
		}
	}
	synced := make(chan struct{})
	conn := jsonrpc.NewConn(jsonrpc.Lines(here), jsonrpc.HandlerFunc(func(ctx context.Context, q *jsonrpc.Request) (any, error) {
		if q.Method == "remote/synced" {
			close(synced)
			return nil, nil
		}
		return onCall(ctx, q)
	}), jsonrpc.Options{PingEvery: -1})
	r.t.Cleanup(func() { conn.Close(jsonrpc.CloseNormal, "done"); conn.Wait() })
	params := map[string]any{"protocol": 1, "client": map[string]string{"name": p.Label, "version": "1"}}
	if err := conn.Call(context.Background(), "initialize", params, nil); err != nil {
		r.t.Fatalf("initialize: %v", err)
	}
	<-synced // else a line of the greeting may be on its way at any later time
	return conn
}

// call calls and fails the test on an error.
func call[R any](t *testing.T, c *jsonrpc.Conn, method string, params any) R {
	t.Helper()
	var out R
	if err := c.Call(context.Background(), method, params, &out); err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	return out
}

// codeOf is the business code of an error.
func codeOf(t *testing.T, err error) (code, field string) {
	t.Helper()
	var refused *jsonrpc.Error
	if !errors.As(err, &refused) {
		t.Fatalf("error %v, want one of the host", err)
	}
	var data struct{ Name, Code, Field string }
	if err := json.Unmarshal(refused.Data, &data); err != nil || refused.Code != jsonrpc.CodeApplication || data.Name != question.ErrorName {
		t.Fatalf("error %d %s %s, want a business error", refused.Code, refused.Message, refused.Data)
	}
	return data.Code, data.Field
}

// obj keeps params short.
type obj = map[string]any
