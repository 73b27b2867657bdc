package wsconn

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"meanwhile/host/gateway"
	"meanwhile/host/jsonrpc"
)

type oneToken struct{}

func (oneToken) Authenticate(_ context.Context, token string) (gateway.Principal, error) {
	if token != "good" {
		return gateway.Principal{}, errors.New("no such token")
	}
	return gateway.Principal{TokenID: "t", Label: "desk", Scopes: gateway.Scopes{"answer"}}, nil
}

// TestGatewayOverWebSocket goes once through what a browser does: a bad token,
// then a good one, an event, its answer, the news of it.
func TestGatewayOverWebSocket(t *testing.T) {
	g := gateway.New(gateway.Config{Auth: oneToken{}})
	settled := make(chan gateway.Outcome, 1)
	p := g.Emit(gateway.Event{
		Name: "ask", Scope: "answer", Params: json.RawMessage(`{"n":1}`),
		Settled: func(o gateway.Outcome) { settled <- o },
	})
	url := serve(t, Config{CheckOrigin: allow}, func(tr jsonrpc.Transport) {
		_ = g.Accept(context.Background(), tr, gateway.Principal{})
	})
	told := make(chan string, 4)
	connect := func(token string) (*jsonrpc.Conn, error) {
		tr, err := Dial(t.Context(), url, DialOptions{})
		if err != nil {
			t.Fatal(err)
		}
		c := jsonrpc.NewConn(tr, jsonrpc.HandlerFunc(func(_ context.Context, r *jsonrpc.Request) (any, error) {
			if !r.IsCall() {
				told <- r.Method + " " + string(r.Params)
				return nil, nil
			}
			return r.Params, nil
		}), jsonrpc.Options{})
		return c, c.Call(t.Context(), "initialize", map[string]any{
			"protocol": 1, "client": map[string]string{"name": "test", "version": "1"}, "token": token,
		}, nil)
	}
	c, err := connect("bad")
	var refused *jsonrpc.Error
	if !errors.As(err, &refused) {
		t.Errorf("bad token: got %v, want the peer's error", err)
	}
	<-c.Done()
	c.Wait()
	var closed *jsonrpc.CloseError
	if err := c.Err(); !errors.As(err, &closed) || closed.Code != gateway.CloseToken || closed.Local {
		t.Errorf("bad token: closed by %v, want %d from the host", err, gateway.CloseToken)
	}

	if c, err = connect("good"); err != nil {
		t.Fatal(err)
	}
	o := <-settled
	if want := `{"eventId":"` + p.ID() + `","n":1}`; o.Kind != gateway.Result || string(o.Result) != want || o.ClientName != "desk" {
		t.Errorf("settled by %s: %s %s, want result %s", o.ClientName, o.Kind, o.Result, want)
	}
	// synced lists the event or not, by who was faster; settled always comes.
	want := `remote/settled {"eventId":"` + p.ID() + `","kind":"result","by":"` + o.Client + `","byName":"desk"}`
	if first := <-told; first != want {
		if second := <-told; second != want {
			t.Errorf("told %s, %s; want %s", first, second, want)
		}
	}
	c.Close(jsonrpc.CloseNormal, "")
	c.Wait()
	g.Close()
}
