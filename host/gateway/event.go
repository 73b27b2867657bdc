package gateway

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"meanwhile/host/jsonrpc"
)

// Event is something clients are asked. Its callbacks may be nil.
type Event struct {
	Name   string
	Scope  string          // who gets it
	Params json.RawMessage // an object; the gateway adds eventId and refused
	Codes  []string        // error codes that settle it
	// Check refuses a result that may not settle the event.
	Check func(result json.RawMessage) *Refusal
	// Left tells of a delivery that ended without settling the event: the
	// client delegated, failed or disconnected.
	Left func(clientID string)
	// Settled takes the outcome, once per emission.
	Settled func(Outcome)
}

// Refusal says why a result settles nothing.
type Refusal struct {
	Code    string `json:"code"`
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
}

// Kind is how an event ended.
type Kind int

// Kinds of outcome.
const (
	Result    Kind = iota + 1 // a client's result passed the check
	Rejected                  // a client answered with a listed code
	Cancelled                 // Cancel, or Emit refused it
	Unhandled                 // every client that had it delegated; see Reemit
)

func (k Kind) String() string {
	switch k {
	case Result:
		return "result"
	case Rejected:
		return "rejected"
	case Cancelled:
		return "cancelled"
	case Unhandled:
		return "unhandled"
	}
	return "kind(" + strconv.Itoa(int(k)) + ")"
}

// Outcome of an event.
type Outcome struct {
	Kind       Kind
	Result     json.RawMessage
	Code       string // Rejected and Cancelled
	Client     string // who settled it; empty for one without a connection
	ClientName string // the label of its token
	Pending    *Pending
}

// phase of an event. Only settle, delegate and Reemit assign it.
type phase uint8

const (
	pending phase = iota // in the list; from Emit or Reemit
	dormant              // the last delivery delegated; until Reemit or Cancel
	ended                // settled or cancelled
)

// Pending is an emitted event.
type Pending struct {
	g  *Gateway
	ev Event
	id string

	// Below: only under update.
	seq        uint64 // its place in the list, higher after each emission
	prev, next *Pending
	marks      []mark
	phase      phase
}

// mark notes what is not plain about one client's delivery. A plain one has
// none: it is open if the client has passed the event's place in the list.
type mark struct {
	client  uint64
	attempt uint32 // refused so often; part of the call's id
	ended   bool   // delegated or failed
}

func (p *Pending) mark(client uint64) mark {
	for _, m := range p.marks {
		if m.client == client {
			return m
		}
	}
	return mark{client: client}
}

func (p *Pending) setMark(s *state, m mark) {
	for i := range p.marks {
		if p.marks[i].client == m.client {
			p.marks[i] = m
			return
		}
	}
	// Clients come and go for as long as the event is pending.
	p.marks = slices.DeleteFunc(p.marks, func(old mark) bool { return !s.connected(old.client) })
	p.marks = append(p.marks, m)
}

// ID returns the event's random id, the same for all clients and emissions.
func (p *Pending) ID() string { return p.id }

// Emit makes ev pending. It never blocks and does not call back, but for an
// event over a limit, which is cancelled at once with CodeTooLarge or
// CodeTooMany.
func (g *Gateway) Emit(ev Event) *Pending {
	p := &Pending{g: g, ev: ev, id: g.cfg.NewID()}
	if trimmed := bytes.TrimSpace(ev.Params); len(trimmed) < 2 || trimmed[0] != '{' {
		panic("gateway: params of event " + ev.Name + " are not an object")
	}
	if len(ev.Params) > MaxEventParams {
		p.phase = ended
		p.tell(Outcome{Kind: Cancelled, Code: CodeTooLarge})
		return p
	}
	var wake []*client
	g.update(func(s *state) {
		if len(s.byID) >= g.cfg.MaxEvents {
			p.phase = ended
			return
		}
		wake = s.append(p)
	})
	if p.phase == ended {
		p.tell(Outcome{Kind: Cancelled, Code: CodeTooMany})
		return p
	}
	wakeAll(wake)
	return p
}

// Reemit makes a dormant event pending again, for the clients that have not
// delegated it: above all for those that connect from now on. It reports
// whether the event was dormant.
func (p *Pending) Reemit() bool {
	var wake []*client
	was := false
	p.g.update(func(s *state) {
		if was = p.phase == dormant; was {
			p.phase = pending
			wake = s.append(p)
		}
	})
	wakeAll(wake)
	return was
}

// Cancel ends the event for everyone and reports whether it was still pending
// or dormant. It calls Settled before it returns.
func (p *Pending) Cancel(code string) bool {
	return p.g.settle(p, Outcome{Kind: Cancelled, Code: code}, nil)
}

func (p *Pending) tell(o Outcome) {
	if o.Pending = p; p.ev.Settled != nil {
		p.ev.Settled(o)
	}
}

// settlement is what clients are told of one outcome.
type settlement struct {
	eventID string
	frame   []byte
}

type settledParams struct {
	EventID string `json:"eventId"`
	Kind    string `json:"kind"`
	Code    string `json:"code,omitempty"`
	By      string `json:"by,omitempty"`
	ByName  string `json:"byName,omitempty"`
}

// settle ends p with o, if nothing did before. answered is the client whose
// response it is: its call is closed already.
func (g *Gateway) settle(p *Pending, o Outcome, answered *client) bool {
	params, err := jsonrpc.Encode(settledParams{
		EventID: p.id, Kind: o.Kind.String(), Code: o.Code, By: o.Client, ByName: o.ClientName,
	})
	if err != nil {
		panic("gateway: " + err.Error()) // plain strings always encode
	}
	told := &settlement{eventID: p.id, frame: jsonrpc.EncodeNotice(methodSettled, params)}
	var wake, slow []*client
	took := false
	g.update(func(s *state) {
		if took = p.phase != ended; !took {
			return
		}
		// A client that came while the event was dormant has passed its place
		// without having had it.
		asleep := p.phase == dormant
		if p.phase = ended; !asleep {
			s.remove(p)
		}
		for _, c := range s.clients {
			switch {
			case !c.had(p), asleep && !p.mark(c.no).ended:
			case c.queuedSettlements() >= g.cfg.MaxLag:
				slow = append(slow, c)
			default:
				m := p.mark(c.no)
				c.settled = append(c.settled, settledFor{
					settlement: told, attempt: m.attempt, cancel: !m.ended && c != answered,
				})
				wake = append(wake, c)
			}
		}
	})
	if !took {
		return false
	}
	wakeAll(wake)
	closeSlow(slow)
	p.tell(o)
	return true
}

// delegate ends c's delivery of p by its own wish.
func (g *Gateway) delegate(c *client, p *Pending) bool {
	was, last := false, false
	g.update(func(s *state) {
		if was = p.phase == pending && c.open(p); !was {
			return
		}
		s.endDelivery(c, p)
		last = !slices.ContainsFunc(s.clients, func(other *client) bool { return other.mayAnswer(p) })
		if last {
			s.remove(p)
			p.phase = dormant
		}
	})
	if was && p.ev.Left != nil {
		p.ev.Left(c.id)
	}
	if last {
		p.tell(Outcome{Kind: Unhandled})
	}
	return was
}

// abandon ends c's delivery of p as if the client had left.
func (g *Gateway) abandon(c *client, p *Pending) {
	was := false
	g.update(func(s *state) {
		if was = p.phase == pending && c.open(p); was {
			s.endDelivery(c, p)
		}
	})
	if was && p.ev.Left != nil {
		p.ev.Left(c.id)
	}
}

func (s *state) endDelivery(c *client, p *Pending) {
	m := p.mark(c.no)
	m.ended = true
	p.setMark(s, m)
}

// outcome judges what a client says about p: by its response when answered, by
// remote/settle otherwise; c is nil for a request without a connection.
func (g *Gateway) outcome(c *client, p *Pending, who Outcome, rpcErr *jsonrpc.Error, answered bool) (bool, *Refusal) {
	var closed *client
	if answered {
		closed = c
	}
	if rpcErr == nil {
		if p.ev.Check != nil {
			if refused := p.ev.Check(who.Result); refused != nil {
				return false, refused
			}
		}
		who.Kind = Result
		who.Result = bytes.Clone(who.Result) // it is part of a whole frame
		return g.settle(p, who, closed), nil
	}
	switch code := errorCode(rpcErr); {
	case code != "" && slices.Contains(p.ev.Codes, code):
		who.Kind, who.Code, who.Result = Rejected, code, nil
		return g.settle(p, who, closed), nil
	case c == nil:
		return false, nil
	case code == CodeNext:
		return g.delegate(c, p), nil
	default:
		g.abandon(c, p)
		return false, nil
	}
}

// errorCode returns the data.code of a client's error.
func errorCode(e *jsonrpc.Error) string {
	var data struct {
		Code string `json:"code"`
	}
	// Data of another form has no code; that is not ours to complain about.
	_ = json.Unmarshal(e.Data, &data)
	return data.Code
}

// wireID names one delivery of an event on the wire. It says all that is
// needed to match the response, so that nothing is kept per open delivery.
func wireID(eventID string, attempt uint32) jsonrpc.ID {
	if attempt == 0 {
		return jsonrpc.StringID(eventID)
	}
	return jsonrpc.StringID(eventID + "#" + strconv.FormatUint(uint64(attempt), 10))
}

func parseWireID(text string) (eventID string, attempt uint32, ok bool) {
	eventID, n, again := strings.Cut(text, "#")
	if !again {
		return eventID, 0, true
	}
	a, err := strconv.ParseUint(n, 10, 32)
	return eventID, uint32(a), err == nil && a > 0
}
