package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"meanwhile/host/jsonrpc"
)

const (
	// backWithin is how long a call waits for a host that went away to come back.
	backWithin = 20 * time.Second
	// knockEvery is how often it looks.
	knockEvery = 200 * time.Millisecond
)

// Link is a Host in another process. It connects when it is first needed,
// starts a host when none runs, and connects again when the host comes back. A
// call that was cut is made again: each call names what it is about, so twice
// is once.
type Link struct {
	// Dial connects to a running host.
	Dial func(ctx context.Context) (*jsonrpc.Conn, error)
	// Start starts a host and returns at once; Dial succeeds when it is up. Nil:
	// none is started.
	Start func(ctx context.Context) error

	mu      sync.Mutex // held while connecting: one start for all that wait
	conn    *jsonrpc.Conn
	started bool // a host ran before: whoever stopped it may start it again
}

// Call makes one call, over a new connection if the old one is gone.
func (l *Link) Call(ctx context.Context, method string, params, result any) error {
	for {
		c, err := l.connect(ctx)
		if err != nil {
			return err
		}
		err = c.Call(ctx, method, params, result)
		var said *jsonrpc.Error
		switch {
		case err == nil || ctx.Err() != nil:
			return err
		case errors.Is(err, jsonrpc.ErrClosed):
		case errors.As(err, &said) && isStopping(said):
			c.Close(jsonrpc.CloseNormal, "the host is stopping")
		default:
			return err
		}
	}
}

// Close ends the connection, if there is one.
func (l *Link) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		l.conn.Close(jsonrpc.CloseNormal, "done")
		l.conn.Wait()
		l.conn = nil
	}
}

func (l *Link) connect(ctx context.Context) (*jsonrpc.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil && l.conn.Err() == nil {
		return l.conn, nil
	}
	if l.conn != nil {
		l.conn.Wait()
		l.conn = nil
	}
	c, err := l.Dial(ctx)
	if err != nil && !l.started && l.Start != nil {
		if err := l.Start(ctx); err != nil {
			return nil, fmt.Errorf("start a host: %w", err)
		}
	}
	if err != nil {
		if c, err = l.knock(ctx, err); err != nil {
			return nil, err
		}
	}
	l.conn, l.started = c, true
	return c, nil
}

// knock dials until a host answers, and returns the first refusal otherwise.
func (l *Link) knock(ctx context.Context, first error) (*jsonrpc.Conn, error) {
	over := time.NewTimer(backWithin)
	defer over.Stop()
	tick := time.NewTicker(knockEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-over.C:
			return nil, first
		case <-tick.C:
		}
		if c, err := l.Dial(ctx); err == nil {
			return c, nil
		}
	}
}
