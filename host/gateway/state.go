package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"meanwhile/host/jsonrpc"
)

// state is all clients and pending events.
type state struct {
	closed   bool
	accepted int                       // connections, ready or not
	conns    map[*jsonrpc.Conn]*client // the same, to close them
	clients  []*client                 // ready ones, in connection order
	posted   map[*posted]struct{}      // calls without a connection, under way
	lastNo   uint64

	byID       map[string]*Pending // the pending ones
	head, tail *Pending            // the same, by seq
	lastSeq    uint64
}

func newState() state {
	return state{conns: map[*jsonrpc.Conn]*client{}, posted: map[*posted]struct{}{}, byID: map[string]*Pending{}}
}

// posted is one call without a connection.
type posted struct {
	tokenID string
	end     context.CancelCauseFunc
}

// client is one connection. Its place in the list of events is all it holds of
// them, whatever their number.
type client struct {
	no     uint64
	id     string
	caller Caller        // set by initialize
	ready  chan struct{} // closed by initialize

	// Below: only under update.
	stage   stage
	conn    *jsonrpc.Conn // set when it becomes ready
	next    *Pending      // the first event not delivered yet; nil: none
	passed  uint64        // seq of the last event delivered or skipped
	syncAt  uint64        // the last event that was there when it came
	synced  bool
	settled []settledFor // to be told, oldest first
	told    int          // settled[:told] is told
	again   []again      // refused deliveries to repeat
}

// stage of a client; see the package doc.
type stage uint8

const (
	connected stage = iota
	initializing
	ready
	gone
)

type settledFor struct {
	*settlement
	attempt uint32
	cancel  bool // its call is open
}

type again struct {
	p       *Pending
	refused *Refusal
}

// had reports whether c was called for p, however that went.
func (c *client) had(p *Pending) bool {
	return p.seq <= c.passed && c.caller.Scopes.Has(p.ev.Scope)
}

// open reports whether c has a delivery of p that has not ended.
func (c *client) open(p *Pending) bool {
	return c.stage == ready && c.had(p) && !p.mark(c.no).ended
}

// mayAnswer is open, or will be.
func (c *client) mayAnswer(p *Pending) bool {
	return c.caller.Scopes.Has(p.ev.Scope) && !p.mark(c.no).ended
}

func (c *client) queuedSettlements() int { return len(c.settled) - c.told }

func (s *state) connected(no uint64) bool {
	return slices.ContainsFunc(s.clients, func(c *client) bool { return c.no == no })
}

func (s *state) client(id string) *client {
	i := slices.IndexFunc(s.clients, func(c *client) bool { return c.id == id })
	if i < 0 || id == "" {
		return nil
	}
	return s.clients[i]
}

// append puts p at the end of the list and returns whom to wake.
func (s *state) append(p *Pending) (wake []*client) {
	s.lastSeq++
	p.seq, p.prev, p.next = s.lastSeq, s.tail, nil
	if s.tail == nil {
		s.head = p
	} else {
		s.tail.next = p
	}
	s.tail = p
	s.byID[p.id] = p
	for _, c := range s.clients {
		if c.next == nil {
			c.next = p
		}
		if c.caller.Scopes.Has(p.ev.Scope) {
			wake = append(wake, c)
		}
	}
	return wake
}

// remove takes p out of the list.
func (s *state) remove(p *Pending) {
	for _, c := range s.clients {
		if c.next == p {
			c.next = p.next
		}
	}
	if p.prev == nil {
		s.head = p.next
	} else {
		p.prev.next = p.next
	}
	if p.next == nil {
		s.tail = p.prev
	} else {
		p.next.prev = p.prev
	}
	p.prev, p.next = nil, nil
	delete(s.byID, p.id)
}

// outgoing is one thing to write to a client; frames encodes it after unlock.
type outgoing struct {
	settled settledFor
	p       *Pending
	attempt uint32
	refused *Refusal
	sync    bool
	ids     []string
}

// nextFor takes the next thing to write to c.
func (s *state) nextFor(c *client) (out outgoing, ok bool) {
	if c.stage != ready {
		return out, false
	}
	if c.queuedSettlements() > 0 {
		out.settled = c.settled[c.told]
		c.settled[c.told] = settledFor{}
		if c.told++; c.told == len(c.settled) {
			c.settled, c.told = nil, 0
		}
		return out, true
	}
	for len(c.again) > 0 {
		a := c.again[0]
		if c.again = c.again[1:]; a.p.phase == pending && c.open(a.p) {
			return outgoing{p: a.p, attempt: a.p.mark(c.no).attempt, refused: a.refused}, true
		}
	}
	for c.next != nil && (c.synced || c.next.seq <= c.syncAt) {
		p := c.next
		c.next, c.passed = p.next, p.seq
		if c.open(p) {
			return outgoing{p: p, attempt: p.mark(c.no).attempt}, true
		}
	}
	if c.synced {
		return out, false
	}
	c.synced = true
	out = outgoing{sync: true, ids: []string{}}
	for p := s.head; p != nil && p.seq <= c.passed; p = p.next {
		if c.open(p) {
			out.ids = append(out.ids, p.id)
		}
	}
	return out, true
}

func (o outgoing) frames() [][]byte {
	switch {
	case o.settled.settlement != nil:
		if !o.settled.cancel {
			return [][]byte{o.settled.frame}
		}
		return [][]byte{o.settled.frame, jsonrpc.EncodeCancel(wireID(o.settled.eventID, o.settled.attempt))}
	case o.sync:
		params, err := jsonrpc.Encode(map[string][]string{"eventIds": o.ids})
		if err != nil {
			panic("gateway: " + err.Error()) // plain strings always encode
		}
		return jsonrpc.EncodeNotices(methodSynced, params)
	}
	return [][]byte{jsonrpc.EncodeCall(wireID(o.p.id, o.attempt), o.p.ev.Name, o.p.params(o.refused))}
}

// params are the event's own with the gateway's members around them.
func (p *Pending) params(refused *Refusal) json.RawMessage {
	own := trimObject(p.ev.Params)
	b := make([]byte, 0, len(own)+len(p.id)+64)
	b = append(append(append(b, `{"eventId":"`...), p.id...), '"')
	if len(own) > 0 {
		b = append(append(b, ','), own...)
	}
	if refused != nil {
		r, err := jsonrpc.Encode(refused)
		if err != nil {
			panic("gateway: " + err.Error()) // plain strings always encode
		}
		b = append(append(b, `,"refused":`...), r...)
	}
	return append(b, '}')
}

func trimObject(object json.RawMessage) []byte {
	trimmed := bytes.TrimSpace(object)
	return bytes.TrimSpace(trimmed[1 : len(trimmed)-1])
}

func wakeAll(clients []*client) {
	for _, c := range clients {
		c.conn.Wake()
	}
}

func closeSlow(clients []*client) {
	for _, c := range clients {
		c.conn.Close(jsonrpc.CloseSlow, "too slow: too many settlements behind")
	}
}
