// Package abi is the module's boundary without the pointers: bytes in, bytes
// out, and no failure that escapes. Twin of web/src/wasm/abi.ts.
//
// It owns the one input buffer, the packing of results, the error document, and
// the two stateless calls (check and fold). The machine is behind Step and View.
//
// States: good → dead, after a panic. A dead module answers TRAP for ever: its
// state may be half changed, so the driver makes a new one. A refused input
// changed nothing. Concurrency: one owner. Limits: InputMax.
package abi

import (
	"bytes"
	"runtime"

	"meanwhile/shared/deadline/countdown"
	"meanwhile/shared/event"
	"meanwhile/shared/event/value"
	"meanwhile/shared/projection"
	"meanwhile/wasm/client/machine"
)

// Version is what the export abi answers.
const Version = 1

// InputMax is the largest input; the buffer is dropped after one over
// bufferKept, so that a rare large one does not hold its memory.
const (
	InputMax   = 16 << 20
	bufferKept = 1 << 20
)

// Module is one instance of the client module.
type Module struct {
	machine machine.Machine
	in, out []byte
	dead    string
}

// Buffer gives the input buffer with room for n bytes, or nil.
func (m *Module) Buffer(n int) []byte {
	if n < 0 || n > InputMax {
		return nil
	}
	if n > cap(m.in) || cap(m.in) > bufferKept && n <= bufferKept {
		m.in = make([]byte, max(n, 64<<10))
	}
	return m.in[:cap(m.in)]
}

// Step is the export step.
func (m *Module) Step(wall, mono int64, n int) []byte {
	return m.call(n, func(in []byte) ([]byte, *machine.Error) {
		return m.machine.Step(countdown.Stamp{Wall: wall, Mono: mono}, in)
	})
}

// View is the export view.
func (m *Module) View(wall, mono int64, n int) []byte {
	return m.call(n, func(in []byte) ([]byte, *machine.Error) {
		return m.machine.View(countdown.Stamp{Wall: wall, Mono: mono}, in)
	})
}

// Check is the export check.
func (m *Module) Check(n int) []byte { return m.call(n, check) }

// Fold is the export fold.
func (m *Module) Fold(n int) []byte { return m.call(n, fold) }

func (m *Module) call(n int, f func([]byte) ([]byte, *machine.Error)) (out []byte) {
	defer func() {
		if r := recover(); r != nil {
			m.dead = reason(r)
			out = document("TRAP", m.dead)
		}
		m.out = out // keeps it alive until the next call
	}()
	if m.dead != "" {
		return document("TRAP", m.dead)
	}
	if n < 0 || n > len(m.Buffer(0)) {
		return document("TOO_LARGE", "the input is longer than the buffer that alloc gave")
	}
	out, refused := f(m.in[:n])
	if refused != nil {
		return document(refused.Code, refused.Message)
	}
	return out
}

func reason(r any) string {
	switch r := r.(type) {
	case runtime.Error:
		return r.Error()
	case error:
		return r.Error()
	case string:
		return r
	}
	return "panic"
}

func document(code, message string) []byte {
	var w value.Writer
	w.Begin()
	w.Name("error")
	w.Begin()
	w.StrField("code", code)
	w.StrField("message", message)
	w.End()
	w.End()
	return w.Bytes()
}

func check(in []byte) ([]byte, *machine.Error) {
	v, err := value.Parse(in)
	if err != nil {
		return nil, &machine.Error{Code: "BAD_INPUT", Message: err.Error()}
	}
	what := v.Get("check").Text()
	if what != "ask" && what != "answer" {
		return nil, &machine.Error{Code: "BAD_INPUT", Message: "check must be ask or answer"}
	}
	qs, p := projection.QuestionsOfWire(v.Get("questions"))
	if p == nil && what == "ask" {
		p = projection.CheckAsk(qs, v.Get("timed").True())
	}
	if p == nil && what == "answer" {
		_, p = projection.CheckAnswer(qs, v.Get("answer"))
	}
	if p == nil {
		return []byte(`{"ok":true}`), nil
	}
	return problem(p.Code, p.Field, p.Message), nil
}

func problem(code, field, message string) []byte {
	var w value.Writer
	w.Begin()
	w.Name("problem")
	w.Begin()
	w.StrField("code", code)
	w.OptField("field", field)
	w.StrField("message", message)
	w.End()
	w.End()
	return w.Bytes()
}

func fold(in []byte) ([]byte, *machine.Error) {
	var set *projection.Set
	view, seq, line := "", int64(-1), 0
	for rest := in; len(rest) > 0; line++ {
		text, after, _ := bytes.Cut(rest, []byte("\n"))
		rest = after
		switch line {
		case 0:
			v, err := value.Parse(text)
			view = v.Get("view").Text()
			if err != nil || view != "userQuestions" && view != "inbox" && view != "replies" {
				return nil, &machine.Error{Code: "BAD_INPUT", Message: "the first line names the view: userQuestions, inbox or replies"}
			}
		case 1:
			h, err := event.ParseHeader(text)
			if err != nil {
				return problem("DAMAGED", "", err.Error()), nil
			}
			set = projection.NewSet(h)
		default:
			e, err := event.ParseEvent(text)
			if err == nil && e.Seq != seq+1 {
				err = &projection.LogError{Seq: e.Seq, Why: "does not follow the one before"}
			}
			if err == nil {
				seq = e.Seq
				err = set.Apply(e, nil)
			}
			if err != nil {
				return problem("DAMAGED", "", err.Error()), nil
			}
		}
	}
	if set == nil {
		return nil, &machine.Error{Code: "BAD_INPUT", Message: "the second line is the session's header"}
	}
	var w value.Writer
	w.Begin()
	w.Name("view")
	switch view {
	case "userQuestions":
		set.Questions.AppendView(&w)
	case "inbox":
		set.Inbox.AppendView(&w)
	default:
		var state value.Writer
		set.AppendState(&state)
		v, _ := value.Parse(state.Bytes())
		w.Value(v.Get("replies"))
	}
	w.IntField("seq", seq)
	w.End()
	return w.Bytes(), nil
}
