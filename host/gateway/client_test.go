package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"meanwhile/host/jsonrpc"
)

// slowAuth holds every token back until release is closed.
type slowAuth struct {
	release chan struct{}
	err     error
}

func (a slowAuth) Authenticate(ctx context.Context, token string) (Principal, error) {
	select {
	case <-a.release:
		return tokenOf(token), a.err
	case <-ctx.Done():
		return Principal{}, ctx.Err()
	}
}

// dial connects a client to g and ends both with the test.
func dial(t *testing.T, ctx context.Context, g *Gateway, p Principal) (c *jsonrpc.Conn, ended <-chan error) {
	t.Helper()
	ours, theirs := net.Pipe()
	done := make(chan error, 1)
	var wg sync.WaitGroup
	wg.Go(func() { done <- g.Accept(ctx, jsonrpc.Lines(ours), p) })
	c = jsonrpc.NewConn(jsonrpc.Lines(theirs), nil, jsonrpc.Options{PingEvery: -1})
	t.Cleanup(func() {
		c.Close(jsonrpc.CloseNormal, "")
		c.Wait()
		wg.Wait()
	})
	return c, done
}

func initAs(token string) initParams {
	in := initParams{Protocol: Protocol, Token: token}
	in.Client.Name, in.Client.Version = "test", "1"
	return in
}

func TestCallsBehindInitializeWaitForIt(t *testing.T) {
	tests := []struct {
		name string
		err  error
		want int // close code, 0: the call is served
	}{
		{name: "good token"},
		{name: "bad token", err: errors.New("no"), want: CloseToken},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := sample(Config{})
				auth := slowAuth{release: make(chan struct{}), err: test.err}
				g.cfg.Auth = auth
				c, _ := dial(t, t.Context(), g, Principal{})
				initialized, called := make(chan error, 1), make(chan error, 1)
				go func() { initialized <- c.Call(t.Context(), methodInit, initAs("admin"), nil) }()
				synctest.Wait()
				go func() { called <- c.Call(t.Context(), "secret", nil, nil) }()
				synctest.Wait()
				select {
				case err := <-called:
					t.Fatalf("served before initialize was: %v", err)
				default:
				}
				close(auth.release)
				initErr, callErr := <-initialized, <-called
				if test.want == 0 {
					if initErr != nil || callErr != nil {
						t.Errorf("got %v, %v", initErr, callErr)
					}
					return
				}
				var refused *jsonrpc.Error
				var closed *jsonrpc.CloseError
				if !errors.As(initErr, &refused) || !strings.Contains(string(refused.Data), CodeBadToken) {
					t.Errorf("initialize: got %v, want %s", initErr, CodeBadToken)
				}
				if !errors.As(callErr, &closed) || closed.Code != test.want {
					t.Errorf("the call behind it: got %v, want close code %d", callErr, test.want)
				}
			})
		})
	}
}

func TestLateInitializeCountsFromItsArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := sample(Config{})
		auth := slowAuth{release: make(chan struct{})}
		g.cfg.Auth = auth
		c, _ := dial(t, t.Context(), g, Principal{})
		done := make(chan error, 1)
		go func() { done <- c.Call(t.Context(), methodInit, initAs("read"), nil) }()
		ctx, cancel := context.WithTimeout(t.Context(), 2*DefaultInitTimeout)
		defer cancel()
		<-ctx.Done() // the check of the token is our own slowness
		close(auth.release)
		if err := <-done; err != nil {
			t.Errorf("got %v", err)
		}
	})
}

func TestAcceptEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := sample(Config{})
		ctx, cancel := context.WithCancel(t.Context())
		c, ended := dial(t, ctx, g, tokenOf("read"))
		if err := c.Call(t.Context(), methodInit, initAs(""), nil); err != nil {
			t.Fatal(err)
		}
		held := make(chan error, 1)
		go func() {
			held <- c.Stream(t.Context(), "hold", nil, func(json.RawMessage) error { return nil })
		}()
		synctest.Wait()
		cancel()
		var closed *jsonrpc.CloseError
		if err := <-held; !errors.As(err, &closed) || closed.Code != jsonrpc.CloseGoingAway || closed.Local {
			t.Errorf("the client saw %v, want close code %d", err, jsonrpc.CloseGoingAway)
		}
		if err := <-ended; !errors.Is(err, jsonrpc.ErrClosed) {
			t.Errorf("accept: %v", err)
		}
		if clients, _ := g.Counts(); clients != 0 {
			t.Errorf("%d clients left", clients)
		}
	})
}

func TestCallerDoneClosesWithTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Config{})
		callers := make(chan *Caller, 1)
		g.Handle("keep", "", func(_ context.Context, c *Caller, _ json.RawMessage) (any, error) {
			callers <- c
			return struct{}{}, nil
		})
		c, _ := dial(t, t.Context(), g, tokenOf("read"))
		if err := c.Call(t.Context(), methodInit, initAs(""), nil); err != nil {
			t.Fatal(err)
		}
		if err := c.Call(t.Context(), "keep", nil, nil); err != nil {
			t.Fatal(err)
		}
		caller := <-callers
		synctest.Wait()
		select {
		case <-caller.Done:
			t.Fatal("done while connected")
		default:
		}
		c.Close(jsonrpc.CloseNormal, "")
		<-caller.Done
	})
}

// A token revoked while its client was being greeted is found when the client is
// in the list that DropToken looks at.
func TestTokenRevokedDuringInitialize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := make(chan string, 1)
		g := New(Config{Live: func(id string) bool { asked <- id; return false }})
		p := tokenOf("read")
		c, _ := dial(t, t.Context(), g, p)
		if err := c.Call(t.Context(), methodInit, initAs(""), nil); err != nil {
			t.Fatal(err)
		}
		<-c.Done()
		if id := <-asked; id != p.TokenID {
			t.Errorf("asked about %q, want %q", id, p.TokenID)
		}
	})
}

// Without Config.Wire the gateway's own errors keep their code, and without
// Config.Auth every token is refused.
func TestPlainConfig(t *testing.T) {
	g := New(Config{})
	g.Handle("secret", "admin", nil)
	status, body, _ := g.Post(t.Context(), tokenOf("read"), []byte(`{"jsonrpc":"2.0","id":1,"method":"secret"}`))
	want := `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"secret needs a token with scope \"admin\"","data":{"code":"MISSING_SCOPE","field":"admin"}}}`
	if status != http.StatusOK || string(body) != want {
		t.Errorf("got %d %s\nwant 200 %s", status, body, want)
	}
	c, _ := dial(t, t.Context(), g, tokenOf("read"))
	var refused *jsonrpc.Error
	if err := c.Call(t.Context(), methodInit, initAs("any"), nil); !errors.As(err, &refused) || !strings.Contains(string(refused.Data), CodeBadToken) {
		t.Errorf("initialize: got %v, want %s", err, CodeBadToken)
	}
}

func TestPostLimits(t *testing.T) {
	g := New(Config{})
	g.Handle("big", "", func(context.Context, *Caller, json.RawMessage) (any, error) {
		return strings.Repeat("x", jsonrpc.MaxFrame), nil
	})
	status, body, _ := g.Post(t.Context(), tokenOf("read"), []byte(strings.Repeat(" ", jsonrpc.MaxFrame+1)))
	if status != http.StatusRequestEntityTooLarge || !json.Valid(body) {
		t.Errorf("a large body: %d %s", status, body)
	}
	status, body, _ = g.Post(t.Context(), tokenOf("read"), []byte(`{"jsonrpc":"2.0","id":1,"method":"big"}`))
	if status != http.StatusOK || !strings.Contains(string(body), "result over") {
		t.Errorf("a large result: %d %.100s", status, body)
	}
}

func TestKindString(t *testing.T) {
	for kind, want := range map[Kind]string{
		Result: "result", Rejected: "rejected", Cancelled: "cancelled", Unhandled: "unhandled", 0: "kind(0)",
	} {
		if got := kind.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
