package session

import (
	"meanwhile/shared/event"
	"meanwhile/shared/event/value"
)

// Call is a tool call that has no result yet.
type Call struct {
	Turn, Step int64
	CallID     string
	Name       string
	Started    bool // its tool/call is recorded, so it may have run
}

// Balance is what is open in a log: the turn, its step, the calls without a
// result. Repair closes it; the loop and the list read it.
type Balance struct {
	Turn, Step         int64 // the numbers last started; 0 when none was
	TurnOpen, StepOpen bool
	Calls              []Call // without a result, in the order they were asked for
	Ended              string // kind of the last turn's end, "" while none has ended here
	Request            []byte // data of the last request/header, nil before a fork's first
	Title              string // first words of the first user message

	used map[string]struct{}
}

// Used reports whether a call id is in this log already, inherited part
// included.
func (b *Balance) Used(callID string) bool {
	_, ok := b.used[callID]
	return ok
}

// Balanced reports whether repair has nothing to do.
func (b *Balance) Balanced() bool { return !b.TurnOpen }

func (b *Balance) use(callID string) {
	if b.used == nil {
		b.used = make(map[string]struct{})
	}
	b.used[callID] = struct{}{}
}

// apply folds one event. It reads what it can: a log that contradicts itself
// here is still a log, and repair only needs to know what is missing.
func (b *Balance) apply(e event.Event) {
	switch e.Type {
	case event.TypeTurnStart:
		if d, err := event.DecodeTurnStart(e.Data); err == nil {
			b.Turn, b.Step, b.TurnOpen, b.StepOpen, b.Calls = d.Turn, 0, true, false, nil
		}
	case event.TypeTurnEnd:
		d, _ := event.DecodeTurnEnd(e.Data)
		b.TurnOpen, b.StepOpen, b.Calls, b.Ended = false, false, nil, d.Kind
	case event.TypeStepStart:
		if d, err := event.DecodeStep(e.Data); err == nil {
			b.Step, b.StepOpen = d.Step, true
		}
	case event.TypeStepEnd:
		b.StepOpen = false
	case event.TypeRequestHeader:
		b.Request = e.Data
	case event.TypeUserMessage:
		if b.Title == "" {
			if m, err := event.DecodeUserMessage(e.Data); err == nil && m.Source.Kind != event.SourceReply {
				b.Title = titleFrom(m.Text)
			}
		}
	case event.TypeAssistant:
		b.assistant(e)
	case event.TypeToolCall:
		if d, err := event.DecodeToolCall(e.Data); err == nil {
			b.call(Call{d.Turn, d.Step, d.CallID, d.Name, true})
		}
	case event.TypeToolResult:
		if d, err := event.DecodeToolResult(e.Data); err == nil {
			b.result(d.CallID)
		}
	case event.TypePTCDispatch:
		if d, err := event.DecodePTCDispatch(e.Data); err == nil {
			b.use(d.SubCallID)
		}
	case event.TypeEndSeed:
		// What was open belongs to the parent. The fork goes on counting turns
		// and must send a request header of its own.
		b.TurnOpen, b.StepOpen, b.Calls, b.Ended, b.Request = false, false, nil, "", nil
	}
}

func (b *Balance) assistant(e event.Event) {
	d, err := event.DecodeAssistant(e.Data)
	if err != nil {
		return
	}
	for _, block := range d.Blocks {
		if block.Type == event.BlockToolCall && block.CallID != "" {
			b.call(Call{d.Turn, d.Step, block.CallID, block.Name, false})
		}
	}
}

func (b *Balance) call(c Call) {
	b.use(c.CallID)
	for i := range b.Calls {
		if b.Calls[i].CallID == c.CallID {
			b.Calls[i].Started = b.Calls[i].Started || c.Started
			return
		}
	}
	b.Calls = append(b.Calls, c)
}

func (b *Balance) result(callID string) {
	for i := range b.Calls {
		if b.Calls[i].CallID == callID {
			b.Calls = append(b.Calls[:i:i], b.Calls[i+1:]...)
			return
		}
	}
}

func (b *Balance) appendState(w *value.Writer) {
	w.Begin()
	w.IntField("turn", b.Turn)
	w.IntField("step", b.Step)
	w.BoolField("turnOpen", b.TurnOpen)
	w.BoolField("stepOpen", b.StepOpen)
	w.Name("calls")
	w.BeginArray()
	for _, c := range b.Calls {
		w.Begin()
		w.IntField("turn", c.Turn)
		w.IntField("step", c.Step)
		w.StrField("callId", c.CallID)
		w.StrField("name", c.Name)
		w.BoolField("started", c.Started)
		w.End()
	}
	w.EndArray()
	w.StrField("ended", b.Ended)
	if b.Request != nil {
		w.Name("request")
		w.Raw(b.Request)
	}
	w.StrField("title", b.Title)
	w.Name("used")
	w.BeginArray()
	for id := range b.used {
		w.Str(id)
	}
	w.EndArray()
	w.End()
}

func parseBalance(v value.Value) (Balance, bool) {
	r := strictReader{ok: v.Kind() == value.Object && len(v.Extra("turn", "step", "turnOpen", "stepOpen", "calls", "ended", "request", "title", "used")) == 0}
	b := Balance{Turn: r.int(v, "turn"), Step: r.int(v, "step"), TurnOpen: r.bool(v, "turnOpen"), StepOpen: r.bool(v, "stepOpen"),
		Ended: r.str(v, "ended"), Title: r.str(v, "title")}
	for _, item := range r.items(v, "calls") {
		b.Calls = append(b.Calls, Call{r.int(item, "turn"), r.int(item, "step"), r.str(item, "callId"), r.str(item, "name"), r.bool(item, "started")})
	}
	for _, item := range r.items(v, "used") {
		id, ok := item.Str()
		r.ok = r.ok && ok
		b.use(id)
	}
	if req := v.Get("request"); req.Kind() != value.Missing {
		b.Request = req.Bytes()
	}
	return b, r.ok
}

// strictReader reads typed members and remembers whether all were there.
type strictReader struct{ ok bool }

func (r *strictReader) int(v value.Value, name string) int64 {
	n, ok := v.Get(name).Int()
	r.ok = r.ok && ok
	return n
}

func (r *strictReader) str(v value.Value, name string) string {
	s, ok := v.Get(name).Str()
	r.ok = r.ok && ok
	return s
}

func (r *strictReader) bool(v value.Value, name string) bool {
	m := v.Get(name)
	r.ok = r.ok && m.Kind() == value.Bool
	return m.True()
}

func (r *strictReader) items(v value.Value, name string) []value.Value {
	m := v.Get(name)
	r.ok = r.ok && m.Kind() == value.Array
	return m.Items()
}
