package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"meanwhile/host/llm"
	"meanwhile/host/tool"
	"meanwhile/shared/event/value"
)

// finalWindow is how long the last ask of a session waits.
const finalWindow = 60 * time.Second

// asksMax bounds the asks of one session.
const asksMax = 8

// model plays the model of one session. It is outside of the host's process:
// what it did lives on.
type model struct {
	dice *dice

	mu    sync.Mutex
	asks  int
	calls int
	still bool // only ends its turns from now on
	final bool // but asks once more, with finalWindow
}

func (m *model) Name() string { return "sim" }

// Stream thinks for a while and replies.
func (m *model) Stream(ctx context.Context, r llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		think := m.dice.upTo(3 * time.Second)
		if m.dice.in(3) {
			think = 0
		}
		t := time.NewTimer(think)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			yield(llm.Chunk{}, &llm.Error{Kind: llm.KindAborted, Err: context.Cause(ctx)})
			return
		}
		for _, c := range m.reply(r) {
			var err error
			if c.Kind == 0 {
				err = &llm.Error{Kind: llm.KindRequest, Message: "the model failed"}
			}
			if !yield(c, err) {
				return
			}
		}
	}
}

// reply chooses what the model does. A chunk of no kind is a failure.
func (m *model) reply(r llm.Request) []llm.Chunk {
	m.mu.Lock()
	defer m.mu.Unlock()
	say := []llm.Chunk{{Kind: llm.Text, Text: "done"}, {Kind: llm.Finish, Reason: llm.FinishStop}}
	var use []llm.Chunk
	call := func(name, args string) {
		m.calls++
		id := fmt.Sprint("call-", m.calls)
		if m.dice.in(12) {
			id = "" // the loop names it
		}
		use = append(use, llm.Chunk{Kind: llm.ToolCallDelta, Index: len(use), CallID: id, Name: name, Arguments: args})
	}
	legacy := len(r.Tools) < 3
	switch n := m.dice.pick(20); {
	case m.final:
		m.final = false
		call("ask_user_question", fmt.Sprintf(`{"timeout":%d,"questions":%s}`, finalWindow/time.Second, drawQuestions(m.dice)))
	case m.still:
		return say
	case n < 9 && m.asks < asksMax:
		for range 1 + m.dice.pick(2) {
			m.asks++
			call("ask_user_question", m.ask(legacy))
		}
	case n < 11:
		call("work", "{}")
	case n < 12 && m.asks < asksMax:
		m.asks++
		call("ask_user_question", m.ask(legacy))
		call("work", "{}")
	case n < 15 && !legacy:
		id := lastPending(r)
		if id == "" {
			return say
		}
		call("withdraw_question", fmt.Sprintf(`{"callId":%q}`, id))
	case n < 16:
		return []llm.Chunk{{}}
	default:
		return say
	}
	if use == nil {
		return say
	}
	return append(use, llm.Chunk{Kind: llm.Finish, Reason: llm.FinishToolCalls})
}

// ask draws one batch of questions in the tool's spelling.
func (m *model) ask(legacy bool) string { return drawAsk(m.dice, legacy) }

func drawAsk(d *dice, legacy bool) string {
	questions := drawQuestions(d)
	if legacy {
		return `{"questions":` + questions + `}`
	}
	switch n := d.pick(10); {
	case n == 0:
		return `{"questions":` + questions + `}`
	case n == 1:
		return `{"timeout":-1,"questions":` + questions + `}`
	}
	return fmt.Sprintf(`{"timeout":%d,"questions":%s}`, drawTimeout(d), questions)
}

// drawTimeout gives seconds, mostly few.
func drawTimeout(d *dice) int { return []int{1, 2, 3, 5, 8, 15, 30, 60}[d.pick(8)] }

func drawQuestions(d *dice) string {
	shapes := []string{
		`{"id":"%s","question":"Which one?","options":[{"label":"Red (Recommended)"},{"label":"Blue"}]}`,
		`{"id":"%s","question":"Which ones?","multi_select":true,"options":[{"label":"North"},{"label":"South"},{"label":"East"}]}`,
		`{"id":"%s","question":"In your own words?"}`,
		`{"id":"%s","question":"Plain?","options":[{"label":"Yes"},{"label":"No"}]}`,
	}
	n := 1 + d.pick(4)/3
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf(shapes[d.pick(len(shapes))], fmt.Sprint("q", i))
	}
	return "[" + strings.Join(out, ",") + "]"
}

// lastPending is the call id of the last pending result that the model saw.
func lastPending(r llm.Request) (id string) {
	for _, m := range r.Messages {
		if m.Role != llm.RoleTool {
			continue
		}
		if v, err := value.ParseString(m.Text()); err == nil && v.Get("pending").True() {
			id = v.Get("callId").Text()
		}
	}
	return id
}

// work is a tool that takes a while.
type work struct{}

func (work) Spec() tool.Spec {
	return tool.Spec{Name: "work", Description: "Works for a while.", Parameters: json.RawMessage(`{"type":"object"}`)}
}

func (work) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	t := time.NewTimer(time.Duration(len(c.CallID)%7) * time.Second)
	defer t.Stop()
	select {
	case <-t.C:
		return tool.Result{Text: "worked"}, nil
	case <-ctx.Done():
		return tool.Result{}, &tool.Error{Name: "WorkError", Code: "WORK_ABORTED", Message: "The work was given up."}
	}
}
