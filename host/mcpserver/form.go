package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"meanwhile/host/internal/id"
	"meanwhile/host/jsonrpc"
	"meanwhile/shared/event/value"
	"meanwhile/shared/projection"
)

const (
	// formQuestions and formOptions are what a form in a terminal still shows
	// well. Larger batches are left to the other clients.
	formQuestions = 6
	formOptions   = 16
	// formTries is how often an incomplete form is shown again.
	formTries = 3
	// noForms is the first protocol whose servers cannot show a form while a call
	// goes on: there a form ends the call until the person reacts, and a question
	// with a window must let its agent go on.
	noForms = "2026-07-28"
)

// errLeft tells the host that this client has nothing to say to an event: it
// leaves it, and delegates and answers nothing.
var errLeft = &jsonrpc.Fault{Code: jsonrpc.CodeCancelled, Message: "no form is shown for this"}

// forms shows questions of this process's agent as forms of its client. It is a
// client of the host like the page, with a token that a person gave it.
type forms struct {
	dial func(ctx context.Context, h jsonrpc.Handler) (*jsonrpc.Conn, error)
	log  *slog.Logger
	ctx  context.Context // of the process
	work sync.WaitGroup

	mu     sync.Mutex
	conn   *jsonrpc.Conn
	failed bool                          // the token was refused, or the like; not tried again
	agents map[string]*mcp.ServerSession // by the host's session
	shown  map[string]*shown             // by event
}

// shown is one question in a form.
type shown struct {
	ctx      context.Context
	cancel   context.CancelFunc
	answered chan json.RawMessage // gets one answer, or is closed without one
}

func newForms(ctx context.Context, o Options) *forms {
	if o.Answer == nil {
		return nil
	}
	return &forms{dial: o.Answer, log: o.Log, ctx: ctx, agents: map[string]*mcp.ServerSession{}, shown: map[string]*shown{}}
}

// canShow reports whether a form can be shown while this call goes on.
func canShow(req *mcp.CallToolRequest) bool {
	c := req.ClientCapabilities()
	return c != nil && c.Elicitation != nil && (c.Elicitation.Form != nil || c.Elicitation.URL == nil) && req.ProtocolVersion() < noForms
}

// offer lets the questions of a session be shown by its agent's client. Without
// a connection there is one client less to answer them, and no more.
func (f *forms) offer(sessionID string, agent *mcp.ServerSession) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.agents[sessionID] = agent
	if f.failed || f.conn != nil && f.conn.Err() == nil {
		return
	}
	c, err := f.dial(f.ctx, f)
	if err != nil {
		f.failed = true
		f.log.Warn("questions are not shown as forms", "error", err)
		return
	}
	f.conn = c
}

// close ends every form and the connection.
func (f *forms) close() {
	f.mu.Lock()
	c := f.conn
	for _, s := range f.shown {
		s.cancel()
	}
	f.mu.Unlock()
	if c != nil {
		c.Close(jsonrpc.CloseNormal, "done")
		c.Wait()
	}
	f.work.Wait()
}

// Handle serves the host's calls to this client.
func (f *forms) Handle(ctx context.Context, r *jsonrpc.Request) (any, error) {
	switch r.Method {
	case "ping":
		return map[string]int64{"time": 0}, nil
	case "remote/settled":
		var p struct{ EventID, Code string }
		if json.Unmarshal(r.Params, &p) == nil {
			f.settled(p.EventID, p.Code)
		}
		return nil, nil
	case "user-questions/request":
		return f.request(ctx, r.Params)
	}
	return nil, errLeft
}

// settled takes a form away, unless only its window is over: what the person
// has typed by then is a late answer.
func (f *forms) settled(eventID, code string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.shown[eventID]; s != nil && code != "ASK_TIMED_OUT" {
		s.cancel()
	}
}

type eventParams struct {
	EventID   string `json:"eventId"`
	SessionID string `json:"sessionId"`
	Request   struct {
		Questions json.RawMessage `json:"questions"`
		Wait      struct {
			CallID string `json:"callId"`
		} `json:"wait"`
	} `json:"request"`
	Refused *struct{ Message string } `json:"refused"`
}

// request shows an event of one of our agents and returns the person's answer.
func (f *forms) request(ctx context.Context, raw json.RawMessage) (any, error) {
	var p eventParams
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, errLeft
	}
	questions, ok := formOf(p.Request.Questions)
	f.mu.Lock()
	agent := f.agents[p.SessionID]
	if !ok || agent == nil || p.Request.Wait.CallID == "" {
		f.mu.Unlock()
		return nil, errLeft
	}
	s := f.shown[p.EventID]
	if s == nil {
		s = &shown{answered: make(chan json.RawMessage, 1)}
		s.ctx, s.cancel = context.WithCancel(f.ctx)
		f.shown[p.EventID] = s
		f.work.Go(func() { f.show(agent, p, questions, s) })
	}
	f.mu.Unlock()
	select {
	case answers, ok := <-s.answered:
		if !ok {
			return nil, errLeft // dismissed: not an answer, and not a refusal of all
		}
		return map[string]json.RawMessage{"answers": answers}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// show asks the person, and brings a late answer by the late road.
func (f *forms) show(agent *mcp.ServerSession, p eventParams, questions []projection.Question, s *shown) {
	answers, err := fill(s.ctx, agent, questions, p.Refused)
	f.mu.Lock()
	delete(f.shown, p.EventID)
	f.mu.Unlock()
	defer s.cancel()
	defer close(s.answered)
	if err != nil {
		if s.ctx.Err() == nil {
			f.log.Debug("form", "error", err)
		}
		return
	}
	s.answered <- answers // has room: nobody else sends
	f.late(p, answers, s)
}

// late sends an answer whose event ended while the form was open. Whether it did
// is the host's word: while the event is pending, the ask takes no late answer.
func (f *forms) late(p eventParams, answers json.RawMessage, s *shown) {
	f.mu.Lock()
	c := f.conn
	f.mu.Unlock()
	params := map[string]any{"sessionId": p.SessionID, "callId": p.Request.Wait.CallID,
		"answer": map[string]any{"answers": answers}, "submissionId": id.New()}
	if err := c.Call(s.ctx, "userQuestions/answer", params, nil); err != nil {
		f.log.Debug("late answer of a form", "error", err)
	}
}

// errDismissed ends a form without an answer.
var errDismissed = errors.New("the form was dismissed")

// fill shows the form until it is complete or dismissed.
func fill(ctx context.Context, agent *mcp.ServerSession, qs []projection.Question, refused *struct{ Message string }) (json.RawMessage, error) {
	note := ""
	if refused != nil {
		note = "The last answer was not taken: " + refused.Message + "\n\n"
	}
	for range formTries {
		res, err := agent.Elicit(ctx, &mcp.ElicitParams{Mode: "form", Message: note + formText(qs), RequestedSchema: formSchema(qs)})
		switch {
		case err != nil:
			return nil, err
		case res.Action != "accept":
			return nil, errDismissed
		}
		answers, missing := formAnswers(qs, res.Content)
		if missing == "" {
			return answers, nil
		}
		note = fmt.Sprintf("Please answer %q too, or skip it.\n\n", missing)
	}
	return nil, errDismissed
}

// formOf reads questions that fit a form.
func formOf(raw json.RawMessage) ([]projection.Question, bool) {
	v, err := value.Parse(raw)
	if err != nil {
		return nil, false
	}
	qs, problem := projection.QuestionsOfWire(v)
	if problem != nil || len(qs) > formQuestions {
		return nil, false
	}
	for _, q := range qs {
		// A plan is read before it is approved, which takes more than a form.
		if len(q.Options) > formOptions || q.Intent != nil {
			return nil, false
		}
	}
	return qs, true
}

func formText(qs []projection.Question) string {
	var b strings.Builder
	for i, q := range qs {
		if i > 0 {
			b.WriteString("\n\n")
		}
		if len(qs) > 1 {
			fmt.Fprintf(&b, "%d. ", i+1)
		}
		b.WriteString(q.Question)
		for _, o := range q.Options {
			if o.Description != nil {
				fmt.Fprintf(&b, "\n- %s: %s", o.Label, *o.Description)
			}
		}
	}
	return b.String()
}

// The members of a form for question n: its choice or text, one switch for each
// option of a multiple choice, the person's own words, and skipping.
func chosen(n int) string    { return fmt.Sprintf("q%d", n+1) }
func option(n, o int) string { return fmt.Sprintf("q%d_option%d", n+1, o+1) }
func ownWords(n int) string  { return fmt.Sprintf("q%d_own_words", n+1) }
func skipped(n int) string   { return fmt.Sprintf("q%d_skip", n+1) }

// formSchema is flat, as the protocol wants it. Nothing is required and nothing
// preset: a choice that was not made is no answer.
func formSchema(qs []projection.Question) map[string]any {
	props := map[string]any{}
	for n, q := range qs {
		title := cut(q.Question)
		if q.Header != nil {
			title = *q.Header
		}
		switch {
		case len(q.Options) == 0:
			props[chosen(n)] = map[string]any{"type": "string", "title": title}
		case q.Multi():
			for o := range q.Options {
				props[option(n, o)] = map[string]any{"type": "boolean", "title": title + ": " + q.Options[o].Label}
			}
		default:
			labels := make([]string, len(q.Options))
			for o := range q.Options {
				labels[o] = q.Options[o].Label
			}
			props[chosen(n)] = map[string]any{"type": "string", "title": title, "enum": labels}
		}
		if len(q.Options) > 0 {
			props[ownWords(n)] = map[string]any{"type": "string", "title": title + ": in your own words"}
		}
		props[skipped(n)] = map[string]any{"type": "boolean", "title": title + ": skip this question"}
	}
	return map[string]any{"type": "object", "properties": props}
}

// formAnswers reads a form. missing is a question that was neither answered nor
// skipped; what else is wrong with an answer is for the host to say.
func formAnswers(qs []projection.Question, content map[string]any) (answers json.RawMessage, missing string) {
	out := make([]projection.Answer, len(qs))
	for n, q := range qs {
		a := projection.Answer{ID: q.ID}
		text := func(name string) string {
			s, _ := content[name].(string)
			if strings.TrimSpace(s) == "" {
				return ""
			}
			return s
		}
		on := func(name string) bool { b, _ := content[name].(bool); return b }
		custom := text(ownWords(n))
		switch {
		case len(q.Options) == 0:
			custom = text(chosen(n))
		case q.Multi():
			for o := range q.Options {
				if on(option(n, o)) {
					a.Selected = append(a.Selected, q.Options[o].Label)
				}
			}
		case custom == "": // own words stand for themselves
			if label := text(chosen(n)); label != "" {
				a.Selected = []string{label}
			}
		}
		if custom != "" {
			a.Custom = &custom
		}
		if len(a.Selected) == 0 && custom == "" && !on(skipped(n)) {
			return nil, cut(q.Question)
		}
		out[n] = a
	}
	var w value.Writer
	projection.AppendAnswers(&w, out)
	return w.Bytes(), ""
}
