package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Defaults of Options.
const (
	DefaultMaxCalls     = 1024
	DefaultMaxQueue     = 256
	DefaultMaxQueued    = 4 << 20
	DefaultMaxItem      = 16 << 20
	DefaultWriteTimeout = 10 * time.Second
	DefaultStallTimeout = 30 * time.Second
	DefaultPingEvery    = 20 * time.Second
	DefaultPingTimeout  = 60 * time.Second
)

// Transport carries frames. Read is called by one goroutine, Write by another,
// Close by any. After the first Close, Read must fail within a few seconds, or
// as soon as the peer has taken the code; it returns a *CloseError when the
// peer closed with a code, and ErrTooBig for a frame over MaxFrame. Write
// honours the deadline of its context. Read may go on after ErrTooBig and
// after a *CloseError with Local set, which is a rule of the transport's own
// that the peer broke.
type Transport interface {
	Read(ctx context.Context) ([]byte, error)
	Write(ctx context.Context, frame []byte) error
	Close(code int, reason string) error
}

// Handler serves the peer's calls and notifications. A call runs on its own
// goroutine and its result is encoded as JSON; a notification runs on the
// reader and its result is dropped.
type Handler interface {
	Handle(ctx context.Context, r *Request) (any, error)
}

// HandlerFunc is a function as a Handler.
type HandlerFunc func(ctx context.Context, r *Request) (any, error)

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, r *Request) (any, error) { return f(ctx, r) }

// Options of a connection. The zero value has every default.
type Options struct {
	MaxCalls     int           // calls in flight, each way; 0: DefaultMaxCalls
	MaxQueue     int           // frames waiting to be written; 0: DefaultMaxQueue
	MaxQueued    int           // bytes of them; 0: DefaultMaxQueued
	MaxItem      int           // bytes of one joined stream item; 0: DefaultMaxItem
	WriteTimeout time.Duration // for one frame; 0: DefaultWriteTimeout
	StallTimeout time.Duration // for room in a full queue; 0: DefaultStallTimeout
	PingEvery    time.Duration // 0: DefaultPingEvery; negative: never
	PingTimeout  time.Duration // 0: DefaultPingTimeout

	// Screen sees every request on the reader, in order, before it is served;
	// of a notification in chunks it sees each chunk.
	// An error ends the connection: a *CloseError with its own code, any
	// other with ClosePolicy. Nil: all pass.
	Screen func(r *Request) error
	// Pull returns the next frames to write, or nil when there are none until
	// Wake. It runs on the writer. Nil: nothing to pull.
	Pull func() [][]byte
	// Reply takes the responses to calls with string ids, which the owner
	// sent through Pull under ids of its own. It runs on the reader. Nil: such
	// a response breaks the protocol.
	Reply func(id string, result json.RawMessage, err *Error)
	// Log is where faults that the peer is not told about go. Nil: dropped.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	set := func(v *int, def int) {
		if *v == 0 {
			*v = def
		}
	}
	wait := func(v *time.Duration, def time.Duration) {
		if *v == 0 {
			*v = def
		}
	}
	set(&o.MaxCalls, DefaultMaxCalls)
	set(&o.MaxQueue, DefaultMaxQueue)
	set(&o.MaxQueued, DefaultMaxQueued)
	set(&o.MaxItem, DefaultMaxItem)
	wait(&o.WriteTimeout, DefaultWriteTimeout)
	wait(&o.StallTimeout, DefaultStallTimeout)
	wait(&o.PingEvery, DefaultPingEvery)
	wait(&o.PingTimeout, DefaultPingTimeout)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Conn is one end of a connection. Its methods may be called by any goroutine.
type Conn struct {
	t    Transport
	h    Handler
	o    Options
	wake chan struct{} // one token: the writer has something to look at

	ctx    context.Context // the connection's life; its cause is Err
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup

	mu sync.Mutex
	st state // only through update
}

// state is all that is in flight.
type state struct {
	ended   bool
	lastID  int64
	calls   map[int64]*call
	serving map[ID]*served

	queue  []outgoing
	head   int           // queue[:head] is written
	queued int           // bytes of queue[head:]
	room   chan struct{} // closed when frames left; nil: nobody waits

	last *CloseError // ends the connection once the queue is written

	// told is set while a frame with a written callback is with the transport,
	// and closed after the callback. The peer may have the frame, and call again,
	// before the callback has run: its next call waits for that.
	told chan struct{}

	pings []ping // sent and not answered, oldest first
}

// NewConn starts a connection over t. A nil h refuses every call.
func NewConn(t Transport, h Handler, o Options) *Conn {
	ctx, cancel := context.WithCancelCause(context.Background())
	c := &Conn{
		t: t, h: h, o: o.withDefaults(), wake: make(chan struct{}, 1), ctx: ctx, cancel: cancel,
		st: state{calls: map[int64]*call{}, serving: map[ID]*served{}},
	}
	c.wg.Go(c.read)
	c.wg.Go(c.write)
	if c.o.PingEvery > 0 {
		c.wg.Go(c.beat)
	}
	return c
}

// update is the one way to the state. It must not block or call out.
func (c *Conn) update(f func(*state)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.st)
}

// Done is closed when the connection has ended.
func (c *Conn) Done() <-chan struct{} { return c.ctx.Done() }

// Err says why the connection ended: an error that wraps ErrClosed and, when
// either side closed it with a code, a *CloseError. Nil while it is open.
func (c *Conn) Err() error { return context.Cause(c.ctx) }

// Close ends the connection. Only the first close counts. It does not block.
func (c *Conn) Close(code int, reason string) {
	c.end(&CloseError{Code: code, Reason: reason, Local: true}, code, reason)
}

// Finish ends the connection once what is queued now is written: for an answer
// that is the last. Nothing more is queued.
func (c *Conn) Finish(code int, reason string) {
	c.update(func(s *state) {
		if s.last == nil {
			s.last = &CloseError{Code: code, Reason: reason, Local: true}
		}
	})
	c.Wake()
}

// Wait returns when every goroutine of an ended connection is gone, those of
// its handlers included.
func (c *Conn) Wait() { c.wg.Wait() }

// Wake makes the writer look at Options.Pull again.
func (c *Conn) Wake() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *Conn) end(cause error, code int, reason string) {
	first := false
	c.update(func(s *state) {
		if first, s.ended = !s.ended, true; first {
			c.wg.Add(1) // for the close below, while the reader surely counts
		}
		s.queue, s.head, s.queued = nil, 0, 0
	})
	if !first {
		return
	}
	c.cancel(fmt.Errorf("%w: %w", ErrClosed, cause))
	// On its own, since a stuck peer takes its time and whoever ends the
	// connection must not wait for that.
	go func() {
		defer c.wg.Done()
		if err := c.t.Close(code, reason); err != nil {
			c.o.Log.Debug("transport not closed cleanly", "err", err)
		}
	}()
}

// ended returns the cause of an end that has begun.
func (c *Conn) ended() error {
	<-c.ctx.Done()
	return c.Err()
}

// fail ends the connection over something the peer did.
func (c *Conn) fail(err error) {
	var ours *CloseError
	var frame *FrameError
	switch {
	case errors.As(err, &ours):
		c.Close(ours.Code, ours.Reason)
	case errors.As(err, &frame):
		c.Close(frame.Close, frame.Error())
	default:
		c.Close(CloseProtocol, err.Error())
	}
}

// put queues a frame, waiting for room: the backpressure of streams. written,
// unless it is nil, runs on the writer once the transport took the frame.
func (c *Conn) put(ctx context.Context, frame []byte, written func()) error {
	var stall *time.Timer
	for {
		var ended bool
		var room chan struct{}
		c.update(func(s *state) {
			waiting := len(s.queue) - s.head
			switch {
			case s.ended, s.last != nil:
				ended = true
			case waiting == 0, waiting < c.o.MaxQueue && s.queued+len(frame) <= c.o.MaxQueued:
				s.push(outgoing{frame, written})
			default:
				if s.room == nil {
					s.room = make(chan struct{})
				}
				room = s.room
			}
		})
		if ended {
			return c.ended()
		}
		if room == nil {
			c.Wake()
			return nil
		}
		if stall == nil {
			stall = time.NewTimer(c.o.StallTimeout)
			defer stall.Stop()
		}
		select {
		case <-c.ctx.Done():
			return c.Err()
		case <-room:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-stall.C:
			c.Close(CloseSlow, "too slow: the write queue stayed full")
			return c.Err()
		}
	}
}

// putNow queues a small frame that must not wait, in the reserve above the
// queue's limit. A peer that fills that as well is too slow.
func (c *Conn) putNow(frame []byte) {
	full := false
	c.update(func(s *state) {
		if s.ended || s.last != nil {
			return
		}
		if full = len(s.queue)-s.head >= 2*c.o.MaxQueue; !full {
			s.push(outgoing{frame: frame})
		}
	})
	if full {
		c.Close(CloseSlow, "too slow: answers are not taken")
		return
	}
	c.Wake()
}

// outgoing is one frame and what to run once the transport took it whole.
type outgoing struct {
	frame   []byte
	written func()
}

func (s *state) push(o outgoing) {
	s.queue = append(s.queue, o)
	s.queued += len(o.frame)
}

func (s *state) pop() outgoing {
	if s.head == len(s.queue) {
		return outgoing{}
	}
	o := s.queue[s.head]
	s.queue[s.head] = outgoing{}
	s.head++
	s.queued -= len(o.frame)
	if s.head == len(s.queue) {
		s.queue, s.head = s.queue[:0], 0
	} else if s.head >= 1024 && s.head*2 > len(s.queue) {
		n := copy(s.queue, s.queue[s.head:])
		clear(s.queue[n:])
		s.queue, s.head = s.queue[:n], 0
	}
	if s.room != nil {
		close(s.room)
		s.room = nil
	}
	return o
}

// write is the one writer: it takes turns between the queue and Pull.
func (c *Conn) write() {
	for {
		var next outgoing
		var last *CloseError
		c.update(func(s *state) {
			if next, last = s.pop(), s.last; next.written != nil {
				s.told = make(chan struct{})
			}
		})
		frame := next.frame
		if frame == nil && last != nil {
			c.fail(last)
			return
		}
		var pulled [][]byte
		if frame != nil && !c.send(frame) {
			return
		}
		if next.written != nil {
			next.written()
			c.update(func(s *state) { close(s.told); s.told = nil })
		}
		if last == nil && c.o.Pull != nil && c.ctx.Err() == nil {
			pulled = c.o.Pull()
		}
		for _, f := range pulled {
			if !c.send(f) {
				return
			}
		}
		if frame != nil || len(pulled) > 0 {
			continue
		}
		select {
		case <-c.wake:
		case <-c.ctx.Done():
			return
		}
	}
}

func (c *Conn) send(frame []byte) bool {
	ctx, cancel := context.WithTimeout(c.ctx, c.o.WriteTimeout)
	defer cancel()
	err := c.t.Write(ctx, frame)
	switch {
	case err == nil:
		return true
	case c.ctx.Err() == nil && (ctx.Err() != nil || errors.Is(err, os.ErrDeadlineExceeded)):
		// The transport's deadline is the context's, and may be noticed first.
		c.Close(CloseSlow, "too slow: a frame was not taken in time")
	default:
		c.end(err, CloseGoingAway, "")
	}
	return false
}
