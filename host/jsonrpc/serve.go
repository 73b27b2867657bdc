package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

const (
	methodCancel   = "$/cancelRequest"
	methodProgress = "$/progress"
	methodPing     = "ping"
)

// Request is a call or a notification of the peer.
type Request struct {
	Method  string
	Params  json.RawMessage // an object, or nil when absent
	id      ID
	conn    *Conn
	served  *served
	after   func()
	written []func()
}

// served is one call of the peer in flight.
type served struct {
	cancel  context.CancelCauseFunc
	sending bool
	done    bool
}

// IsCall reports whether the peer waits for a response.
func (r *Request) IsCall() bool { return !r.id.IsZero() }

// AfterReply has f run once the response is queued, before the handler's
// goroutine ends: what f wakes is written after it.
func (r *Request) AfterReply(f func()) { r.after = f }

// OnWritten has f run, on the writer, once the transport took the whole
// response: f must be brief. A connection that breaks first never runs it, nor
// does a response that is an error. Only the handler may call it.
func (r *Request) OnWritten(f func()) { r.written = append(r.written, f) }

func (r *Request) wrote() {
	for _, f := range r.written {
		f()
	}
}

// Send sends one stream item before the response. It waits for room in the
// write queue. Only one Send of a call may run at a time.
func (r *Request) Send(ctx context.Context, item any) error {
	raw, err := Encode(item)
	if err != nil {
		return err
	}
	if len(raw) > r.conn.o.MaxItem {
		return fmt.Errorf("stream item of %d bytes: %w", len(raw), ErrTooBig)
	}
	if r.served == nil {
		return errors.New("send on a notification")
	}
	err = nil
	r.conn.update(func(*state) {
		switch {
		case r.served.done:
			err = errors.New("send after the response")
		case r.served.sending:
			err = errors.New("two sends at once on one stream")
		default:
			r.served.sending = true
		}
	})
	if err != nil {
		return err
	}
	defer r.conn.update(func(*state) { r.served.sending = false })
	for _, value := range chunks(raw) {
		params := append(r.id.append([]byte(`{"token":`)), `,"value":`...)
		params = append(append(params, value...), '}')
		if err := r.conn.put(ctx, EncodeNotice(methodProgress, params), nil); err != nil {
			return err
		}
	}
	return nil
}

// read is the one reader. After the end it goes on discarding, so that the
// peer can take the close code, until the transport fails.
func (c *Conn) read() {
	var part joining
	for {
		frame, err := c.t.Read(context.Background())
		var broken *CloseError
		switch {
		case err == nil && c.ctx.Err() != nil:
			continue
		case err == nil:
			var m *Message
			if m, err = ParseMessage(frame); err == nil {
				err = c.take(m, &part)
			}
			if err != nil {
				c.fail(err)
			}
		case errors.Is(err, ErrTooBig):
			c.fail(&FrameError{Close: CloseTooBig, Message: fmt.Sprintf("over %d bytes", MaxFrame)})
		case errors.As(err, &broken) && broken.Local:
			c.fail(err)
		default:
			c.end(err, CloseNormal, "")
			return
		}
	}
}

// joining is a notification whose params come in chunks.
type joining struct {
	method string
	text   []byte
}

func (c *Conn) take(m *Message, part *joining) error {
	switch {
	case m.Method == "":
		return c.response(m)
	case m.Method == methodPing && !m.ID.IsZero():
		c.pong(m)
		return nil
	case !m.ID.IsZero():
		return c.serve(m)
	case m.Method == methodCancel:
		return c.cancelServed(m.Params)
	case m.Method == methodProgress:
		return c.progress(m.Params)
	}
	// Each chunk is screened: a stranger must not fill our memory with them.
	r := &Request{Method: m.Method, Params: m.Params, conn: c}
	if err := c.screen(r); err != nil {
		return err
	}
	if text, more, ok := asChunk(m.Params); ok {
		switch {
		case part.method != "" && part.method != m.Method:
			return badFrame("chunks of two notifications mixed")
		case len(part.text)+len(text) > c.o.MaxItem:
			return &FrameError{Close: CloseTooBig, Message: fmt.Sprintf("params over %d bytes", c.o.MaxItem)}
		}
		part.method, part.text = m.Method, append(part.text, text...)
		if more {
			return nil
		}
		r.Params = part.text
		*part = joining{}
		if err := check(r.Params); err != nil {
			return err
		}
		if r.Params[0] != '{' {
			return badFrame("params must be an object")
		}
	} else if part.method == m.Method {
		return badFrame("notification between the chunks of another")
	}
	if c.h != nil {
		if _, err := c.h.Handle(c.ctx, r); err != nil {
			c.o.Log.Debug("notification not served", "method", m.Method, "err", err)
		}
	}
	return nil
}

func (c *Conn) screen(r *Request) error {
	if c.o.Screen == nil {
		return nil
	}
	err := c.o.Screen(r)
	var own *CloseError
	if err == nil || errors.As(err, &own) {
		return err
	}
	return &CloseError{Code: ClosePolicy, Reason: err.Error(), Local: true}
}

func (c *Conn) serve(m *Message) error {
	ctx, cancel := context.WithCancelCause(c.ctx)
	r := &Request{Method: m.Method, Params: m.Params, id: m.ID, conn: c, served: &served{cancel: cancel}}
	twice, busy := false, false
	var told chan struct{}
	c.update(func(s *state) {
		told = s.told
		switch _, twice = s.serving[m.ID]; {
		case twice:
		case len(s.serving) >= c.o.MaxCalls:
			busy = true
		default:
			s.serving[m.ID] = r.served
		}
	})
	switch {
	case twice:
		cancel(nil)
		return fmt.Errorf("call id %s is in flight already", m.ID)
	case busy:
		cancel(nil)
		c.putNow(EncodeFault(m.ID, Faultf(CodeBusy, "more than %d calls in flight", c.o.MaxCalls)))
		return nil
	}
	if err := c.screen(r); err != nil {
		cancel(nil)
		c.update(func(s *state) { delete(s.serving, m.ID) })
		return err
	}
	c.wg.Go(func() {
		defer cancel(nil)
		if told != nil {
			select {
			case <-told:
			case <-c.ctx.Done():
			}
		}
		c.respond(ctx, r)
	})
	return nil
}

func (c *Conn) respond(ctx context.Context, r *Request) {
	var result any
	err := error(Faultf(CodeMethodNotFound, "no method %q", r.Method))
	if c.h != nil {
		result, err = c.h.Handle(ctx, r)
	}
	frame, handed := c.encodeOutcome(ctx, r, result, err)
	var written func()
	if handed && len(r.written) > 0 {
		written = r.wrote // a refusal carries nothing
	}
	// The id is free before the response is out: the peer may use it again
	// as soon as it has that.
	c.update(func(s *state) {
		r.served.done = true
		delete(s.serving, r.id)
	})
	if c.put(c.ctx, frame, written) == nil && r.after != nil {
		r.after()
	}
}

// encodeOutcome reports beside the response whether it is a result.
func (c *Conn) encodeOutcome(ctx context.Context, r *Request, result any, err error) (frame []byte, handed bool) {
	var fault *Fault
	switch {
	case err == nil:
		raw, encErr := Encode(result)
		if encErr == nil && len(raw) < MaxFrame-256 {
			return EncodeResult(r.id, raw), true
		}
		if fault = Faultf(CodeInternal, "result over %d bytes", MaxFrame); encErr != nil {
			c.o.Log.Error("result not encoded", "method", r.Method, "err", encErr)
			fault.Message = "internal error"
		}
	case errors.As(err, &fault):
	case context.Cause(ctx) == ErrCancelled:
		fault = Faultf(CodeCancelled, "cancelled")
	default:
		if c.ctx.Err() == nil {
			c.o.Log.Error("call failed", "method", r.Method, "err", err)
		}
		fault = Faultf(CodeInternal, "internal error")
	}
	if frame := EncodeFault(r.id, fault); len(frame) <= MaxFrame {
		return frame, false
	}
	return EncodeFault(r.id, Faultf(fault.Code, "error over %d bytes", MaxFrame)), false
}

func (c *Conn) cancelServed(params json.RawMessage) error {
	var raw json.RawMessage
	_, err := eachMember(params, func(name string, v json.RawMessage) error {
		if raw = v; name != "id" {
			return badFrame("unknown member %q in cancel", clip([]byte(name)))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if raw == nil {
		return badFrame("cancel must be {id}")
	}
	id, ok := parseID(raw)
	if !ok {
		return badFrame("id to cancel must be the id of a call")
	}
	var v *served
	c.update(func(s *state) { v = s.serving[id] })
	if v != nil { // else it was answered already
		v.cancel(ErrCancelled)
	}
	return nil
}

// Conn returns the connection the request came by.
func (r *Request) Conn() *Conn { return r.conn }
