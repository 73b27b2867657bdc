package sim

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"meanwhile/host/jsonrpc"
)

// pipeMax frames wait towards a client before the host's writer waits, too.
const pipeMax = 16

// pipe is one direction of a connection: frames in order, each at its time.
type pipe struct {
	mu     sync.Mutex
	frames []parcel
	last   time.Time // no frame overtakes another
	held   time.Time // nothing arrives before
	end    error     // after the frames
	dead   error     // instead of them
	deaf   bool      // what is written from now on goes nowhere
	bell   chan struct{}
	dice   *dice
}

type parcel struct {
	at    time.Time
	frame []byte
}

func newPipe(d *dice) *pipe { return &pipe{bell: make(chan struct{}), dice: d} }

func (p *pipe) ring() {
	close(p.bell)
	p.bell = make(chan struct{})
}

// change runs under the lock and wakes both ends.
func (p *pipe) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	p.ring()
}

// push sends a frame. With a bound it waits for room.
func (p *pipe) push(ctx context.Context, frame []byte, bound int) error {
	frame = append([]byte(nil), frame...)
	for {
		p.mu.Lock()
		switch {
		case p.deaf:
			p.mu.Unlock()
			return nil
		case p.dead != nil:
			err := p.dead
			p.mu.Unlock()
			return err
		case p.end != nil:
			p.mu.Unlock()
			return io.ErrClosedPipe
		case bound == 0 || len(p.frames) < bound:
			at := time.Now().Add(p.dice.upTo(latencyMax))
			if at.Before(p.last) {
				at = p.last
			}
			p.last = at
			p.frames = append(p.frames, parcel{at, frame})
			p.ring()
			p.mu.Unlock()
			return nil
		}
		bell := p.bell
		p.mu.Unlock()
		select {
		case <-bell:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// pop waits for the next frame.
func (p *pipe) pop() ([]byte, error) {
	for {
		p.mu.Lock()
		if p.dead != nil {
			err := p.dead
			p.mu.Unlock()
			return nil, err
		}
		wait := time.Duration(-1)
		if len(p.frames) > 0 {
			at := p.frames[0].at
			if at.Before(p.held) {
				at = p.held
			}
			if wait = max(time.Until(at), 0); wait == 0 {
				f := p.frames[0].frame
				p.frames = p.frames[1:]
				p.ring()
				p.mu.Unlock()
				return f, nil
			}
		} else if p.end != nil {
			err := p.end
			p.mu.Unlock()
			return nil, err
		}
		bell := p.bell
		p.mu.Unlock()
		if wait < 0 {
			<-bell
			continue
		}
		t := time.NewTimer(wait)
		select {
		case <-bell:
		case <-t.C:
		}
		t.Stop()
	}
}

var errCut = errors.New("sim: the connection was cut")

// line is one connection between a client and the host.
type line struct {
	up, down *pipe
}

// latencyMax is the longest that a frame takes on a good day.
const latencyMax = 30 * time.Millisecond

func newLine(seed, part uint64) *line {
	return &line{up: newPipe(newDice(seed, part)), down: newPipe(newDice(seed, part+1))}
}

// cut ends both directions at once; what is under way is lost.
func (l *line) cut() {
	l.up.change(func() { l.up.dead = errCut })
	l.down.change(func() { l.down.dead, l.down.deaf = errCut, false })
}

// drop is the client losing the connection while the host does not notice:
// what the client sent still arrives, what the host writes goes nowhere. The
// host learns of it after a while, with 0 only by its own pings.
func (l *line) drop(after time.Duration) {
	l.down.change(func() { l.down.dead, l.down.deaf = errCut, true })
	if after > 0 {
		time.AfterFunc(after, l.cut)
	}
}

// stall holds both directions up.
func (l *line) stall(d time.Duration) {
	until := time.Now().Add(d)
	l.up.change(func() { l.up.held = until })
	l.down.change(func() { l.down.held = until })
	time.AfterFunc(d, func() { l.up.change(func() {}); l.down.change(func() {}) })
}

// hostEnd is the host's side as a jsonrpc.Transport.
type hostEnd struct{ *line }

func (h hostEnd) Read(context.Context) ([]byte, error) { return h.up.pop() }

func (h hostEnd) Write(ctx context.Context, frame []byte) error {
	return h.down.push(ctx, frame, pipeMax)
}

func (h hostEnd) Close(code int, reason string) error {
	h.down.change(func() {
		if h.down.end == nil {
			h.down.end = &jsonrpc.CloseError{Code: code, Reason: reason}
		}
	})
	h.up.change(func() { h.up.dead = io.EOF })
	return nil
}

// clientEnd is a Go client's side, for those who are no pages.
type clientEnd struct{ *line }

func (c clientEnd) Read(context.Context) ([]byte, error) { return c.down.pop() }

func (c clientEnd) Write(ctx context.Context, frame []byte) error {
	return c.up.push(ctx, frame, 0)
}

func (c clientEnd) Close(int, string) error {
	c.up.change(func() {
		if c.up.end == nil {
			c.up.end = io.EOF
		}
	})
	c.down.change(func() { c.down.dead = io.EOF })
	return nil
}
