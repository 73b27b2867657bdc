package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
)

// deafTransport takes frames only while it hears.
type deafTransport struct {
	in   chan []byte
	out  chan []byte
	deaf error
	gone chan struct{}
	slow chan struct{} // when set, Write returns after it, though the frame is out
}

func (d *deafTransport) Read(ctx context.Context) ([]byte, error) {
	select {
	case b := <-d.in:
		return b, nil
	case <-d.gone:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (d *deafTransport) Write(_ context.Context, frame []byte) error {
	if d.deaf != nil {
		return d.deaf
	}
	d.out <- frame
	if d.slow != nil {
		<-d.slow
	}
	return nil
}

func (d *deafTransport) Close(int, string) error {
	close(d.gone)
	return nil
}

// What a response carried counts as written once the transport took it, and
// never when the connection broke before.
func TestOnWritten(t *testing.T) {
	for name, broken := range map[string]error{"taken": nil, "broken": errors.New("broken pipe")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wrote := 0
				hold := make(chan struct{})
				g := New(Config{})
				g.Handle("hand", "", func(ctx context.Context, _ *Caller, _ json.RawMessage) (any, error) {
					OnWritten(ctx, func() { wrote++ })
					<-hold
					return struct{}{}, nil
				})
				d := &deafTransport{in: make(chan []byte, 1), out: make(chan []byte, 8), gone: make(chan struct{})}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- g.Accept(ctx, d, tokenOf("read")) }()
				d.in <- []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocol":1,"client":{"name":"a","version":"1"}}}`)
				synctest.Wait()
				d.in <- []byte(`{"jsonrpc":"2.0","id":2,"method":"hand"}`)
				synctest.Wait()
				d.deaf = broken
				close(hold)
				synctest.Wait()
				if want := map[bool]int{true: 1, false: 0}[broken == nil]; wrote != want {
					t.Errorf("ran %d times, want %d", wrote, want)
				}
				cancel()
				<-ended
			})
		})
	}
	wrote := false
	g := New(Config{})
	g.Handle("hand", "", func(ctx context.Context, _ *Caller, _ json.RawMessage) (any, error) {
		OnWritten(ctx, func() { wrote = true })
		return struct{}{}, nil
	})
	_, _, written := g.Post(t.Context(), tokenOf("read"), []byte(`{"jsonrpc":"2.0","id":1,"method":"hand"}`))
	if wrote {
		t.Error("a POST's response counts as written before it was")
	}
	if written(); !wrote {
		t.Error("a POST's response never counts as written")
	}
}

// A client that has the response and calls again finds what it carried written,
// however late the host's own writer hears of it.
func TestTheNextCallComesAfterOnWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log []string
		g := New(Config{})
		g.Handle("hand", "", func(ctx context.Context, _ *Caller, _ json.RawMessage) (any, error) {
			OnWritten(ctx, func() { log = append(log, "written") })
			return struct{}{}, nil
		})
		g.Handle("again", "", func(context.Context, *Caller, json.RawMessage) (any, error) {
			log = append(log, "again")
			return struct{}{}, nil
		})
		d := &deafTransport{in: make(chan []byte, 1), out: make(chan []byte, 8), gone: make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- g.Accept(ctx, d, tokenOf("read")) }()
		d.in <- []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocol":1,"client":{"name":"a","version":"1"}}}`)
		synctest.Wait()
		d.slow = make(chan struct{})
		d.in <- []byte(`{"jsonrpc":"2.0","id":2,"method":"hand"}`)
		synctest.Wait()
		d.in <- []byte(`{"jsonrpc":"2.0","id":3,"method":"again"}`)
		synctest.Wait()
		close(d.slow)
		synctest.Wait()
		if got := strings.Join(log, " "); got != "written again" {
			t.Errorf("got %q, want the call after what it acknowledges", got)
		}
		cancel()
		<-ended
	})
}
