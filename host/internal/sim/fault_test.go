package sim

import (
	"encoding/json"
	"time"

	"meanwhile/host/question"
	"meanwhile/shared/event/value"
)

// Fault is one that a control plants, through a seam.
type Fault int

// The faults.
const (
	None             Fault = iota
	AckBeforeSync          // the disk says yes before the sync
	LyingSync              // the sync of a file does nothing
	LyingDirSync           // the sync of a directory does nothing
	LostBatch              // a crash takes a batch that was synced
	ForgetfulStorage       // a page that is loaded anew finds its storage empty
	LostItems              // a page loses items of the session list
	SilenceAnswers         // a deadline takes the first option
	AlteredAnswer          // the answer that is passed on is not the one given
	SwallowedAnswer        // an answer is taken and goes nowhere
	GhostClients           // the host never learns that a client has gone
	MonotonicOnly          // time asleep does not count
	faults
)

func (f Fault) String() string {
	return [...]string{"none", "ack before sync", "lying sync", "lying directory sync", "lost batch", "forgetful storage", "lost items", "silence answers",
		"altered answer", "swallowed answer", "ghost clients", "monotonic only"}[f]
}

// emitter puts the faults of the way between service and gateway in.
func (w *World) emitter(emit question.EmitFunc) question.EmitFunc {
	change := func(question.Event, *question.Settlement) bool { return true }
	switch w.fault {
	case SilenceAnswers:
		change = func(ev question.Event, s *question.Settlement) bool {
			if s.Code == question.CodeTimedOut {
				s.Kind, s.Code, s.Result = question.Result, "", firstOptions(ev.Params)
			}
			return true
		}
	case AlteredAnswer:
		change = func(ev question.Event, s *question.Settlement) bool {
			if s.Kind == question.Result {
				s.Result = firstOptions(ev.Params)
			}
			return true
		}
	case SwallowedAnswer:
		change = func(_ question.Event, s *question.Settlement) bool { return s.Kind != question.Result }
	}
	return func(ev question.Event) question.Pending {
		settled := ev.Settled
		ev.Settled = func(s question.Settlement) {
			w.preempt()
			if change(ev, &s) {
				settled(s)
			}
		}
		p := emit(ev)
		w.preempt()
		return late{p, w}
	}
}

// preempt is a goroutine losing the processor for a while, where between
// service and gateway that may make a difference.
func (w *World) preempt() {
	if w.jitter.in(3) {
		time.Sleep(w.jitter.upTo(latencyMax))
	}
}

// late is an event whose cancellation may take a while to get there.
type late struct {
	question.Pending
	w *World
}

func (l late) Cancel(code string) bool { l.w.preempt(); return l.Pending.Cancel(code) }
func (l late) Reemit() bool            { l.w.preempt(); return l.Pending.Reemit() }

// firstOptions answers each question with its first option.
func firstOptions(params json.RawMessage) json.RawMessage {
	v, err := value.Parse(params)
	if err != nil {
		return nil
	}
	var w value.Writer
	w.Begin()
	w.Name("answers")
	w.BeginArray()
	for _, q := range v.Get("request").Get("questions").Items() {
		w.Begin()
		w.StrField("id", q.Get("id").Text())
		w.Name("selected")
		w.BeginArray()
		if o := q.Get("options").Items(); len(o) > 0 {
			w.Str(o[0].Get("label").Text())
		}
		w.EndArray()
		w.End()
	}
	w.EndArray()
	w.End()
	return w.Bytes()
}
