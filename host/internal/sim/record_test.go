package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"meanwhile/shared/event"
	"meanwhile/shared/event/value"
	"meanwhile/shared/projection"
)

// record is what a log says of its asks and messages.
type record struct {
	calls    map[string]*recordedCall
	messages map[string]*recordedMessage
	open     bool // a turn has not ended
}

type recordedCall struct {
	name      string
	arguments string
	at        int64
	results   int
	answers   string // "" without
	pending   bool
	ended     int64 // time of the result
	inherited bool
}

type recordedMessage struct {
	call, batch string // of a reply
	fate        string // queued, admitted, discarded
	inherited   bool
}

// read folds a log in the plainest way, apart from the program's own folds, and
// checks what must hold at every event.
func read(events []event.Event) (*record, error) {
	r := &record{calls: map[string]*recordedCall{}, messages: map[string]*recordedMessage{}}
	queue := map[string][]string{}
	for _, e := range events {
		if err := r.apply(e, queue); err != nil {
			return r, fmt.Errorf("event %d, %s: %w", e.Seq, e.Type, err)
		}
	}
	return r, nil
}

func (r *record) apply(e event.Event, queue map[string][]string) error {
	data, err := value.Parse(e.Data)
	if err != nil {
		return err
	}
	switch e.Type {
	case event.TypeTurnStart:
		if r.open {
			return errors.New("a turn starts in another")
		}
		r.open = true
	case event.TypeTurnEnd:
		if !r.open {
			return errors.New("no turn is open")
		}
		r.open = false
		for id, c := range r.calls {
			if c.results == 0 {
				return fmt.Errorf("call %s has no result", id)
			}
		}
	case event.TypeEndSeed:
		r.open = false // what was open is the parent's
		for _, c := range r.calls {
			c.inherited = true
			c.results = max(c.results, 1)
		}
		for _, m := range r.messages {
			m.inherited = true
		}
		clear(queue)
	case event.TypeToolCall:
		id := data.Get("callId").Text()
		if r.calls[id] != nil {
			return fmt.Errorf("call %s again", id)
		}
		r.calls[id] = &recordedCall{name: data.Get("name").Text(), arguments: data.Get("arguments").Text(), at: e.Time}
	case event.TypeToolResult:
		return r.result(e, data)
	case event.TypeSpliced:
		return r.splice(data, queue)
	case event.TypeUserMessage:
		id := data.Get("id").Text()
		m := r.messages[id]
		if m == nil {
			return fmt.Errorf("message %s was never queued", id)
		}
		if m.fate != "taken" {
			return fmt.Errorf("message %s is admitted and was %s", id, m.fate)
		}
		m.fate = "admitted"
	}
	return nil
}

func (r *record) result(e event.Event, data value.Value) error {
	d, err := event.DecodeToolResult(e.Data)
	if err != nil {
		return err
	}
	c := r.calls[d.CallID]
	if c == nil {
		if d.ErrCode == event.CodeNotStarted {
			return nil // of a call that is in the reply alone
		}
		return fmt.Errorf("result of call %s, which was never made", d.CallID)
	}
	if c.results++; c.results > 1 {
		return fmt.Errorf("call %s has %d results", d.CallID, c.results)
	}
	c.ended = e.Time
	v, err := value.ParseString(d.Text)
	if c.name != projection.ToolName || err != nil || d.IsError {
		return nil
	}
	c.pending = v.Get("pending").True()
	if as, ok := projection.AnswersOf(v.Get("answers")); ok && v.Get("answers").Kind() == value.Array {
		c.answers = canonical(as)
	}
	return nil
}

func (r *record) splice(data value.Value, queue map[string][]string) error {
	target := data.Get("target").Text()
	start, _ := data.Get("start").Int()
	n, _ := data.Get("removedCount").Int()
	q := queue[target]
	if int(start+n) > len(q) {
		return fmt.Errorf("splice %d+%d of %d", start, n, len(q))
	}
	for _, id := range q[start : start+n] {
		r.messages[id].fate = "taken"
		if data.Get("outcome").Text() == event.OutcomeCanceled {
			r.messages[id].fate = "discarded"
		}
	}
	var ids []string
	for _, raw := range data.Get("inserted").Items() {
		m, err := event.MessageOf(raw)
		if err != nil {
			return err
		}
		if r.messages[m.ID] != nil {
			return fmt.Errorf("message %s is queued again", m.ID)
		}
		rm := &recordedMessage{fate: "queued"}
		if m.Source.Kind == event.SourceReply {
			rm.call = m.Source.CallID
			v, _ := value.ParseString(m.Text)
			as, _ := projection.AnswersOf(v.Get("answers"))
			rm.batch = canonical(as)
		}
		r.messages[m.ID] = rm
		ids = append(ids, m.ID)
	}
	queue[target] = slices.Concat(q[:start], ids, q[start+n:])
	return nil
}

// orphaned forgets what a fork inherited: it is its parent's to keep.
func (r *record) orphaned() {
	for id, c := range r.calls {
		if c.inherited {
			delete(r.calls, id)
		}
	}
	for id, m := range r.messages {
		if m.inherited {
			delete(r.messages, id)
		}
	}
}

// says reports whether a batch is what a draft said.
func says(batch, draft string) bool {
	v, err := value.ParseString(batch)
	if err != nil {
		return false
	}
	parts := strings.Split(strings.TrimSuffix(draft, ";"), ";")
	items := v.Items()
	if len(parts) != len(items) {
		return false
	}
	for i, it := range items {
		var labels string
		for _, s := range it.Get("selected").Items() {
			labels += "[" + s.Text() + "]"
		}
		custom, _ := it.Get("custom").Str()
		skipped := labels == "" && it.Get("custom").Kind() == value.Missing
		whole := fmt.Sprintf("%s %v %q", labels, skipped, custom)
		// A skip keeps what was chosen before; blank words are none.
		if parts[i] != whole && !(skipped && strings.Contains(parts[i], " true ")) && !(custom == "" && parts[i] == fmt.Sprintf("%s false %q", labels, " ")) {
			return false
		}
	}
	return true
}
