package loop

import (
	"fmt"

	"meanwhile/host/llm"
	"meanwhile/shared/event"
)

// history is the model's view of one log: a fold over its events, inherited
// ones included, from which each request is built. Nothing else may add to it,
// so what a model reads after a restart is what it would have read before.
type history struct {
	next  int64 // seq of the first event not folded yet
	items []item
	calls map[string]struct{} // the calls some item makes
}

// item is one message of the conversation. The results of an assistant's calls
// hang on it, because they may be recorded in any order and a provider wants
// them in the order of the calls.
type item struct {
	message llm.Message
	results map[string]llm.Message
}

func newHistory() *history { return &history{calls: map[string]struct{}{}} }

// apply folds the next event. Events of no interest to a model change nothing.
func (h *history) apply(e event.Event) error {
	if e.Seq != h.next {
		return fmt.Errorf("history: event %d where %d belongs", e.Seq, h.next)
	}
	if err := h.fold(e); err != nil {
		return fmt.Errorf("history: event %d: %w", e.Seq, err)
	}
	h.next++
	return nil
}

func (h *history) fold(e event.Event) error {
	switch e.Type {
	case event.TypeUserMessage:
		d, err := event.DecodeUserMessage(e.Data)
		if err != nil {
			return err
		}
		if d.Text != "" {
			h.items = append(h.items, item{message: llm.Message{
				Role: llm.RoleUser, Content: []llm.Part{{Type: llm.PartText, Text: d.Text}}}})
		}
	case event.TypeAssistant:
		d, err := event.DecodeAssistant(e.Data)
		if err != nil {
			return err
		}
		h.assistant(d)
	case event.TypeToolCall:
		d, err := event.DecodeToolCall(e.Data)
		if err != nil {
			return err
		}
		h.call(d)
	case event.TypeToolResult:
		d, err := event.DecodeToolResult(e.Data)
		if err != nil {
			return err
		}
		h.result(d)
	}
	return nil
}

// assistant takes a reply in. Reasoning goes back to the model only beside
// tool calls, where providers demand it; elsewhere it would only cost tokens.
func (h *history) assistant(d event.Assistant) {
	m := llm.Message{Role: llm.RoleAssistant}
	calls := false
	for _, b := range d.Blocks {
		switch b.Type {
		case event.BlockText, event.BlockReasoning:
			m.Content = append(m.Content, llm.Part{Type: llm.PartType(b.Type), Text: b.Text})
		case event.BlockToolCall:
			calls = true
			h.calls[b.CallID] = struct{}{}
			m.Content = append(m.Content, llm.Part{Type: llm.PartToolCall, CallID: b.CallID, Name: b.Name, Arguments: b.Arguments})
		}
	}
	if !calls {
		kept := m.Content[:0]
		for _, p := range m.Content {
			if p.Type != llm.PartReasoning {
				kept = append(kept, p)
			}
		}
		m.Content = kept
	}
	if len(m.Content) > 0 {
		h.items = append(h.items, item{message: m, results: map[string]llm.Message{}})
	}
}

// call takes in a call that no assistant message holds: one that an outside
// agent made, in a log that a model now reads as its own past.
func (h *history) call(d event.ToolCall) {
	if h.owner(d.CallID) >= 0 {
		return
	}
	h.calls[d.CallID] = struct{}{}
	part := llm.Part{Type: llm.PartToolCall, CallID: d.CallID, Name: d.Name, Arguments: d.Arguments}
	if n := len(h.items) - 1; n >= 0 && h.items[n].message.Role == llm.RoleAssistant && len(h.items[n].results) == 0 {
		h.items[n].message.Content = append(h.items[n].message.Content, part)
		return
	}
	h.items = append(h.items, item{
		message: llm.Message{Role: llm.RoleAssistant, Content: []llm.Part{part}},
		results: map[string]llm.Message{},
	})
}

// result hangs a result on its call. One without a call says nothing a model
// may be sent, so it is left out.
func (h *history) result(d event.ToolResult) {
	if i := h.owner(d.CallID); i >= 0 {
		h.items[i].results[d.CallID] = llm.Message{Role: llm.RoleTool, ToolCallID: d.CallID, IsError: d.IsError,
			Content: []llm.Part{{Type: llm.PartText, Text: d.Text}}}
	}
}

// ownerMax is how many items back a result looks for its call. Results follow
// their calls within the step; only outside agents' overlapping asks and the
// messages they admit meanwhile lie between.
const ownerMax = 256

// owner is the index of the item whose message makes the call, or -1.
func (h *history) owner(callID string) int {
	if _, ok := h.calls[callID]; !ok {
		return -1
	}
	for i := len(h.items) - 1; i >= 0 && i >= len(h.items)-ownerMax; i-- {
		for _, p := range h.items[i].message.Content {
			if p.Type == llm.PartToolCall && p.CallID == callID {
				return i
			}
		}
	}
	return -1
}

// messages builds what the model is sent: every call followed by its result,
// in the order of the calls. A call that never got one, as in a log forked in
// the middle of a step, gets one that says so.
func (h *history) messages() []llm.Message {
	out := make([]llm.Message, 0, len(h.items))
	for _, it := range h.items {
		out = append(out, it.message)
		for _, p := range it.message.Content {
			if p.Type != llm.PartToolCall {
				continue
			}
			r, ok := it.results[p.CallID]
			if !ok {
				r = llm.Message{Role: llm.RoleTool, ToolCallID: p.CallID, IsError: true, Content: []llm.Part{{
					Type: llm.PartText, Text: "No result of this call was recorded here. It may have taken effect: check before you run it again."}}}
			}
			out = append(out, r)
		}
	}
	return out
}

// renumber gives a new id to each call whose id is empty, already used in this
// log, or used twice in this reply.
func renumber(parts []llm.Part, used func(string) bool, draw func() string) {
	seen := map[string]bool{}
	for i := range parts {
		p := &parts[i]
		if p.Type != llm.PartToolCall {
			continue
		}
		for p.CallID == "" || len(p.CallID) > callIDMax || used(p.CallID) || seen[p.CallID] {
			p.CallID = draw()
		}
		seen[p.CallID] = true
	}
}

// callIDMax is the longest call id taken from a provider, in bytes.
const callIDMax = 200
