package jsonrpc

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// pair connects two Conns and ends them with the test.
func pair(t *testing.T, a, b Handler, oa, ob Options) (*Conn, *Conn) {
	t.Helper()
	pa, pb := net.Pipe()
	ca, cb := NewConn(Lines(pa), a, oa), NewConn(Lines(pb), b, ob)
	t.Cleanup(func() {
		ca.Close(CloseNormal, "")
		cb.Close(CloseNormal, "")
		ca.Wait()
		cb.Wait()
	})
	return ca, cb
}

func TestStreamItemsArriveWholeAndInOrder(t *testing.T) {
	long := strings.Repeat(`"\é`, 300_000)
	server := HandlerFunc(func(ctx context.Context, r *Request) (any, error) {
		for _, item := range []any{"first", long, map[string]any{"chunk": "", "more": false}, "last"} {
			if err := r.Send(ctx, item); err != nil {
				return nil, err
			}
		}
		return struct{}{}, nil
	})
	c, _ := pair(t, nil, server, Options{}, Options{})
	var got []string
	err := c.Stream(t.Context(), "s", nil, func(item json.RawMessage) error {
		got = append(got, string(item))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := Encode(long)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`"first"`, string(raw), `{"chunk":"","more":false}`, `"last"`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
}

func TestStreamItemOverLimit(t *testing.T) {
	var sent error
	server := HandlerFunc(func(ctx context.Context, r *Request) (any, error) {
		sent = r.Send(ctx, strings.Repeat("x", 2000))
		return struct{}{}, sent
	})
	t.Run("refused by the sender", func(t *testing.T) {
		c, _ := pair(t, nil, server, Options{}, Options{MaxItem: 1000})
		err := c.Stream(t.Context(), "s", nil, func(json.RawMessage) error { return nil })
		if err == nil || !errors.Is(sent, ErrTooBig) {
			t.Errorf("stream: %v, send: %v; want a failure over ErrTooBig", err, sent)
		}
	})
	t.Run("refused by the receiver", func(t *testing.T) {
		big := HandlerFunc(func(ctx context.Context, r *Request) (any, error) {
			return nil, r.Send(ctx, strings.Repeat("x", ChunkText*2))
		})
		c, _ := pair(t, nil, big, Options{MaxItem: ChunkText}, Options{})
		err := c.Stream(t.Context(), "s", nil, func(json.RawMessage) error { return nil })
		var closed *CloseError
		if !errors.As(err, &closed) || closed.Code != CloseTooBig {
			t.Errorf("got %v, want close code %d", err, CloseTooBig)
		}
	})
}

func TestPeerCancelReachesTheHandler(t *testing.T) {
	cause := make(chan error, 1)
	started := make(chan struct{})
	server := HandlerFunc(func(ctx context.Context, r *Request) (any, error) {
		close(started)
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return nil, ctx.Err()
	})
	c, _ := pair(t, nil, server, Options{}, Options{})
	why := errors.New("changed my mind")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-started
		cancel(why)
	}()
	if err := c.Call(ctx, "wait", nil, nil); !errors.Is(err, why) {
		t.Errorf("call: got %v, want %v", err, why)
	}
	if got := <-cause; got != ErrCancelled {
		t.Errorf("handler's cause: got %v, want %v", got, ErrCancelled)
	}
}

func TestReadyResponseWinsOverCancelledContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := pair(t, nil, HandlerFunc(func(context.Context, *Request) (any, error) { return 7, nil }), Options{}, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		k, err := c.enter(false)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.put(ctx, EncodeCall(k.id, "x", nil), nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		cancel()
		if m, err := c.await(ctx, k, nil); err != nil || string(m.Result) != "7" {
			t.Errorf("got %v, %v; want the response", m, err)
		}
	})
}

// mute is a peer that reads nothing.
func mute(t *testing.T) net.Conn {
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _ = theirs.Close() })
	return ours
}

func TestSlowPeerIsClosed(t *testing.T) {
	tests := []struct {
		name string
		opts Options
		load func(t *testing.T, c *Conn)
		want time.Duration // when it is closed
	}{
		{
			name: "one frame not taken", opts: Options{PingEvery: -1}, want: DefaultWriteTimeout,
			load: func(t *testing.T, c *Conn) { _ = c.Notify(t.Context(), "x", nil) },
		},
		{
			name: "queue stays full", opts: Options{PingEvery: -1, WriteTimeout: time.Hour, MaxQueue: 2}, want: DefaultStallTimeout,
			load: func(t *testing.T, c *Conn) {
				for range 10 {
					_ = c.Notify(t.Context(), "x", nil)
				}
			},
		},
		{
			name: "bytes stay full", opts: Options{PingEvery: -1, WriteTimeout: time.Hour, MaxQueued: 100}, want: DefaultStallTimeout,
			load: func(t *testing.T, c *Conn) {
				for range 3 {
					_ = c.Notify(t.Context(), "x", map[string]string{"a": strings.Repeat("x", 90)})
				}
			},
		},
		{
			name: "answers not taken", opts: Options{PingEvery: -1, WriteTimeout: time.Hour, MaxQueue: 2}, want: 0,
			load: func(t *testing.T, c *Conn) {
				for range 6 {
					c.putNow([]byte("{}"))
				}
			},
		},
		{
			name: "pings not taken", opts: Options{WriteTimeout: time.Hour}, want: DefaultPingEvery + DefaultPingTimeout,
			load: func(t *testing.T, c *Conn) {},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				c := NewConn(Lines(mute(t)), nil, test.opts)
				go test.load(t, c)
				<-c.Done()
				if got := time.Since(start); got != test.want {
					t.Errorf("closed after %s, want %s", got, test.want)
				}
				var closed *CloseError
				want := CloseSlow
				if test.name == "pings not taken" {
					want = CloseGoingAway
				}
				if err := c.Err(); !errors.As(err, &closed) || closed.Code != want {
					t.Errorf("got %v, want close code %d", err, want)
				}
				c.Wait()
			})
		})
	}
}

func TestStalledStreamEndsAloneAndSlowOneDoesNot(t *testing.T) {
	server := HandlerFunc(func(ctx context.Context, r *Request) (any, error) {
		for i := range 3 * streamAhead {
			if err := r.Send(ctx, i); err != nil {
				return nil, err
			}
		}
		return struct{}{}, nil
	})
	tests := []struct {
		name string
		hold time.Duration
		want error
	}{
		{name: "slow", hold: DefaultStallTimeout - 1},
		{name: "stalled", hold: DefaultStallTimeout + 1, want: ErrStalled},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				// The server's own patience is not what is tested.
				c, _ := pair(t, nil, server, Options{PingEvery: -1}, Options{PingEvery: -1, WriteTimeout: time.Hour, StallTimeout: time.Hour})
				n := 0
				err := c.Stream(t.Context(), "s", nil, func(json.RawMessage) error {
					if n++; n == 1 {
						time.Sleep(test.hold)
					}
					return nil
				})
				if !errors.Is(err, test.want) {
					t.Errorf("got %v, want %v", err, test.want)
				}
				if test.want == nil && n != 3*streamAhead {
					t.Errorf("got %d items, want %d", n, 3*streamAhead)
				}
				if c.Err() != nil {
					t.Errorf("the connection ended: %v", c.Err())
				}
			})
		})
	}
}

func TestFinishWritesTheLastAnswerFirst(t *testing.T) {
	ours, theirs := net.Pipe()
	c := NewConn(Lines(ours), HandlerFunc(func(_ context.Context, r *Request) (any, error) {
		r.AfterReply(func() { r.Conn().Finish(4401, "bye") })
		return "last", nil
	}), Options{})
	go func() { _, _ = theirs.Write([]byte(`{"jsonrpc":"2.0","id":1,"method":"x"}` + "\n")) }()
	in := bufio.NewScanner(theirs)
	var got []string
	for in.Scan() {
		got = append(got, in.Text())
		if len(got) == 2 {
			_ = theirs.Close()
		}
	}
	want := []string{
		`{"jsonrpc":"2.0","id":1,"result":"last"}`,
		`{"jsonrpc":"2.0","method":"$/close","params":{"code":4401,"reason":"bye"}}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	c.Wait()
}

func TestSendRules(t *testing.T) {
	var first *Request
	server := HandlerFunc(func(ctx context.Context, r *Request) (any, error) {
		if first == nil {
			first = r
			return nil, nil
		}
		return nil, first.Send(ctx, 1)
	})
	c, _ := pair(t, nil, server, Options{}, Options{})
	if err := c.Call(t.Context(), "a", nil, nil); err != nil {
		t.Fatal(err)
	}
	var peer *Error
	if err := c.Call(t.Context(), "b", nil, nil); !errors.As(err, &peer) || peer.Code != CodeInternal {
		t.Errorf("send after the response: got %v, want code %d", err, CodeInternal)
	}
}

func TestParamsMustBeAnObject(t *testing.T) {
	c, _ := pair(t, nil, nil, Options{}, Options{})
	if err := c.Call(t.Context(), "x", []int{1}, nil); err == nil || !strings.Contains(err.Error(), "not an object") {
		t.Errorf("got %v", err)
	}
	if err := c.Call(t.Context(), "x", map[string]string{"a": strings.Repeat("x", MaxFrame)}, nil); !errors.Is(err, ErrTooBig) {
		t.Errorf("got %v, want %v", err, ErrTooBig)
	}
	if err := c.Call(t.Context(), "x", nil, nil); err == nil || c.Err() != nil {
		t.Errorf("a nil handler must refuse, and the connection live: %v, %v", err, c.Err())
	}
}

// TestHammer has both sides call, stream, cancel and notify at once, and checks
// that each call got its own answer.
func TestHammer(t *testing.T) {
	type sum struct{ A, B int }
	var notes atomic.Int64
	serve := HandlerFunc(func(ctx context.Context, r *Request) (any, error) {
		var in sum
		if err := Params(r.Params, &in); err != nil {
			return nil, err
		}
		switch r.Method {
		case "note":
			notes.Add(1)
			return nil, nil
		case "stream":
			for i := range in.A {
				if err := r.Send(ctx, i); err != nil {
					return nil, err
				}
			}
		case "wait":
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return in.A + in.B, nil
	})
	a, b := pair(t, serve, serve, Options{MaxQueue: 8}, Options{MaxQueue: 8})
	const workers, rounds = 8, 50
	var wg sync.WaitGroup
	for w := range 2 * workers {
		c := a
		if w%2 == 1 {
			c = b
		}
		wg.Go(func() {
			for i := range rounds {
				var got int
				if err := c.Call(t.Context(), "add", sum{w, i}, &got); err != nil || got != w+i {
					t.Errorf("add: got %d, %v; want %d", got, err, w+i)
					return
				}
				next := 0
				err := c.Stream(t.Context(), "stream", sum{A: i}, func(item json.RawMessage) error {
					if string(item) != fmt.Sprint(next) {
						return fmt.Errorf("item %s, want %d", item, next)
					}
					next++
					return nil
				})
				if err != nil || next != i {
					t.Errorf("stream: %d items, %v; want %d", next, err, i)
					return
				}
				ctx, cancel := context.WithCancel(t.Context())
				go cancel()
				if err := c.Call(ctx, "wait", sum{}, nil); !errors.Is(err, context.Canceled) {
					t.Errorf("wait: got %v", err)
				}
				if err := c.Notify(t.Context(), "note", sum{}); err != nil {
					t.Errorf("note: %v", err)
				}
			}
		})
	}
	wg.Wait()
	// A call after the notifications has seen them all go by.
	for _, c := range []*Conn{a, b} {
		if err := c.Call(t.Context(), "add", sum{}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := notes.Load(), int64(2*workers*rounds); got != want {
		t.Errorf("got %d notifications, want %d", got, want)
	}
}

func TestEndFailsEverythingInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wait := HandlerFunc(func(ctx context.Context, r *Request) (any, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		a, b := pair(t, wait, wait, Options{}, Options{})
		var wg sync.WaitGroup
		for _, c := range []*Conn{a, b} {
			wg.Go(func() {
				if err := c.Call(t.Context(), "wait", nil, nil); !errors.Is(err, ErrClosed) {
					t.Errorf("call: got %v, want %v", err, ErrClosed)
				}
			})
			wg.Go(func() {
				err := c.Stream(t.Context(), "wait", nil, func(json.RawMessage) error { return nil })
				if !errors.Is(err, ErrClosed) {
					t.Errorf("stream: got %v, want %v", err, ErrClosed)
				}
			})
		}
		synctest.Wait()
		a.Close(4400, "PROTOCOL")
		wg.Wait()
		a.Wait()
		b.Wait()
		var closed *CloseError
		if err := b.Err(); !errors.As(err, &closed) || closed.Code != 4400 || closed.Reason != "PROTOCOL" || closed.Local {
			t.Errorf("the peer saw %v", err)
		}
	})
}
