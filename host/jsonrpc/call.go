package jsonrpc

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// streamAhead is how many items of a stream may wait for its callback before
// the reader waits too.
const streamAhead = 64

// call is one of our calls in flight.
type call struct {
	id       ID
	items    chan json.RawMessage // nil unless a stream
	gone     chan struct{}        // closed when the caller no longer waits
	response chan *Message        // holds the one response
	part     []byte               // chunks so far; the reader's
	chunked  bool
	stalled  chan struct{} // closed by the reader that waited too long
}

// Call calls the peer and decodes its result into result, unless that is nil.
// A refusal by the peer is an *Error. When ctx ends first the call is
// cancelled at the peer and the context's cause returned.
func (c *Conn) Call(ctx context.Context, method string, params, result any) error {
	return c.call(ctx, method, params, result, nil)
}

// Stream calls a stream method and gives each item to item, in order, on this
// goroutine. An error of item cancels the call and is returned. The items of
// the same connection wait while item works; it must not wait for another
// stream of that connection.
func (c *Conn) Stream(ctx context.Context, method string, params any, item func(json.RawMessage) error) error {
	return c.call(ctx, method, params, nil, item)
}

func (c *Conn) call(ctx context.Context, method string, params, result any, item func(json.RawMessage) error) error {
	raw, err := encodeParams(params)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	k, err := c.enter(item != nil)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	frame := EncodeCall(k.id, method, raw)
	if len(frame) > MaxFrame {
		c.leave(k)
		return fmt.Errorf("%s: params: %w", method, ErrTooBig)
	}
	if err := c.put(ctx, frame, nil); err != nil {
		c.leave(k)
		return fmt.Errorf("%s: %w", method, err)
	}
	m, err := c.await(ctx, k, item)
	if err != nil {
		if c.leave(k) {
			c.putNow(EncodeCancel(k.id))
		}
		return fmt.Errorf("%s: %w", method, err)
	}
	switch {
	case m.Error != nil:
		return fmt.Errorf("%s: %w", method, m.Error)
	case result == nil:
		return nil
	}
	if err := json.Unmarshal(m.Result, result); err != nil {
		return fmt.Errorf("%s: result: %w", method, err)
	}
	return nil
}

// await waits for the response of k and feeds its items. A response that is
// here wins over a context that has ended.
func (c *Conn) await(ctx context.Context, k *call, item func(json.RawMessage) error) (*Message, error) {
	for {
		select {
		case m := <-k.response:
			return m, drain(k, item)
		default:
		}
		select {
		case m := <-k.response:
			return m, drain(k, item)
		case v := <-k.items:
			if err := item(v); err != nil {
				return nil, err
			}
		case <-k.stalled:
			return nil, ErrStalled
		case <-ctx.Done():
			select {
			case m := <-k.response:
				return m, drain(k, item)
			default:
				return nil, context.Cause(ctx)
			}
		case <-c.ctx.Done():
			// The reader may have handed over the response just before.
			select {
			case m := <-k.response:
				return m, drain(k, item)
			default:
				return nil, c.Err()
			}
		}
	}
}

// drain applies the items that came before the response.
func drain(k *call, item func(json.RawMessage) error) error {
	for {
		select {
		case v := <-k.items:
			if err := item(v); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

func (c *Conn) enter(stream bool) (*call, error) {
	k := &call{gone: make(chan struct{}), response: make(chan *Message, 1)}
	if stream {
		k.items = make(chan json.RawMessage, streamAhead)
		k.stalled = make(chan struct{})
	}
	var err error
	c.update(func(s *state) {
		switch {
		case s.ended:
			err = ErrClosed
		case len(s.calls) >= c.o.MaxCalls:
			err = ErrBusy
		default:
			s.lastID++
			k.id = IntID(s.lastID)
			s.calls[s.lastID] = k
		}
	})
	if err == ErrClosed {
		err = c.ended()
	}
	return k, err
}

// leave takes k out of flight. It reports whether k was, so that only one of
// caller and reader ends it.
func (c *Conn) leave(k *call) bool {
	was := false
	c.update(func(s *state) {
		if was = s.calls[k.id.num] == k; was {
			delete(s.calls, k.id.num)
		}
	})
	if was {
		close(k.gone)
	}
	return was
}

// Notify sends a notification. One that is over a frame goes in chunks.
func (c *Conn) Notify(ctx context.Context, method string, params any) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	raw, err := encodeParams(params)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	for _, frame := range EncodeNotices(method, raw) {
		if err := c.put(ctx, frame, nil); err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
	}
	return nil
}

func encodeParams(params any) (json.RawMessage, error) {
	if params == nil {
		return nil, nil
	}
	raw, err := Encode(params)
	if err != nil {
		return nil, err
	}
	if len(raw) == 0 || raw[0] != '{' {
		return nil, fmt.Errorf("params of type %T are not an object", params)
	}
	return raw, nil
}

// response hands a response to its call.
func (c *Conn) response(m *Message) error {
	if text, isText := m.ID.Text(); isText {
		if c.o.Reply == nil {
			return fmt.Errorf("response to unknown call %s", m.ID)
		}
		c.o.Reply(text, m.Result, m.Error)
		return nil
	}
	pinged := false
	c.update(func(s *state) { pinged = s.pinged(m.ID) })
	if pinged {
		return nil
	}
	k, err := c.find(m.ID)
	if k == nil || err != nil {
		return err // answered, or cancelled by us: late, and no fault
	}
	if c.leave(k) {
		k.response <- m
	}
	return nil
}

func (c *Conn) find(id ID) (*call, error) {
	var k *call
	known := false
	c.update(func(s *state) {
		if k = s.calls[id.num]; !id.isNum {
			k = nil
		}
		known = id.isNum && id.num > 0 && id.num <= s.lastID
	})
	if !known {
		return nil, fmt.Errorf("message for unknown call %s", id)
	}
	return k, nil
}

// progress hands a stream item to its call. A full call makes the reader wait:
// that is the backpressure on the peer. It waits for StallTimeout at most,
// then the stream ends, not the connection.
func (c *Conn) progress(params json.RawMessage) error {
	var token, value json.RawMessage
	_, err := eachMember(params, func(name string, v json.RawMessage) error {
		switch name {
		case "token":
			token = v
		case "value":
			value = v
		default:
			return badFrame("unknown member %q in progress", clip([]byte(name)))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if token == nil || value == nil {
		return badFrame("progress must be {token, value}")
	}
	id, ok := parseID(token)
	if !ok {
		return badFrame("token must be the id of a call")
	}
	k, err := c.find(id)
	if k == nil || k.items == nil || err != nil {
		return err
	}
	if text, more, ok := asChunk(value); ok {
		if len(k.part)+len(text) > c.o.MaxItem {
			return &FrameError{Close: CloseTooBig, Message: fmt.Sprintf("stream item over %d bytes", c.o.MaxItem)}
		}
		if k.part = append(k.part, text...); more {
			k.chunked = true
			return nil
		}
		value, k.part, k.chunked = k.part, nil, false
		if err := check(value); err != nil {
			return err
		}
	} else if k.chunked {
		return badFrame("stream item between the chunks of another")
	}
	select {
	case k.items <- value:
		return nil
	default:
	}
	wait := time.NewTimer(c.o.StallTimeout)
	defer wait.Stop()
	select {
	case k.items <- value:
	case <-k.gone:
	case <-c.ctx.Done():
	case <-wait.C:
		if c.leave(k) {
			close(k.stalled)
			c.putNow(EncodeCancel(k.id))
		}
	}
	return nil
}
