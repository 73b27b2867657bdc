package subagent

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"meanwhile/host/agent"
	"meanwhile/host/internal/id"
	"meanwhile/host/session"
	"meanwhile/host/tool"
	"meanwhile/shared/event"
)

// Name is the tool's name.
const Name = "run_subagent"

// Limits.
const (
	depthMax    = 3       // generations below a root
	childrenMax = 8       // of one agent at once
	promptMax   = 100_000 // bytes
	titleMax    = 80      // characters
	endGrace    = 20 * time.Second
	readMax     = 512 // events read at once
)

// Codes of the tool's errors.
const (
	CodeBadArguments = "BAD_ARGUMENTS"
	CodeDepth        = "SUBAGENT_DEPTH"
	CodeBusy         = "SUBAGENT_LIMIT"
	CodeBlocked      = "SUBAGENT_BLOCKED"
	CodeFailed       = "SUBAGENT_FAILED"
	CodeAborted      = "SUBAGENT_ABORTED"
)

// errorName is the family of the tool's errors.
const errorName = "SubagentError"

// sourceAgent is the source kind of the prompt: the agent's words, not a person's.
const sourceAgent = "agent"

// Agents is the registry of live agents.
type Agents interface {
	Launch(ctx context.Context, sessionID string, owner *agent.Agent, create func(context.Context) (*session.Log, error)) (*agent.Agent, error)
	Remove(ctx context.Context, a *agent.Agent) error
}

// Sessions makes the children's sessions.
type Sessions interface {
	Create(ctx context.Context, h event.Header) (*session.Log, error)
}

// Tool is run_subagent for one agent.
type Tool struct {
	agents   Agents
	sessions Sessions
	owner    *agent.Agent
	children atomic.Int32
}

// New makes the tool for one agent.
func New(agents Agents, sessions Sessions, owner *agent.Agent) *Tool {
	return &Tool{agents: agents, sessions: sessions, owner: owner}
}

// Spec describes the tool to the model.
func (t *Tool) Spec() tool.Spec {
	return tool.Spec{
		Name: Name,
		Description: "Hands a piece of work to another agent that starts with an empty conversation and the same working directory, " +
			"waits until it is done and returns its final message. It sees nothing of this conversation, so the prompt must say " +
			"everything it needs, and what to report. It cannot ask the user anything.",
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"title":{"type":"string","description":"A few words for the list of sessions"},` +
			`"prompt":{"type":"string","description":"The whole task"}},` +
			`"required":["prompt"],"additionalProperties":false}`),
	}
}

// Run runs a child to the end of its turn.
func (t *Tool) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	args, err := parse(c.Arguments)
	if err != nil {
		return tool.Result{}, err
	}
	header := t.owner.Log().Header()
	if header.DelegationDepth >= depthMax {
		return tool.Result{}, refuse(CodeDepth, "there are %d generations of subagents above this one already: do this part of the work yourself", depthMax)
	}
	if t.children.Add(1) > childrenMax {
		t.children.Add(-1)
		return tool.Result{}, refuse(CodeBusy, "%d subagents of this agent are at work: wait for one to finish, then call again", childrenMax)
	}
	defer t.children.Add(-1)

	childID := id.New()
	child, err := t.agents.Launch(ctx, childID, t.owner, func(ctx context.Context) (*session.Log, error) {
		return t.sessions.Create(ctx, event.Header{ID: childID, Title: args.Title, CWD: header.CWD, Agent: header.Agent,
			ParentSession: header.ID, DelegationDepth: header.DelegationDepth + 1})
	})
	if err != nil {
		return tool.Result{}, fmt.Errorf("launch subagent: %w", err)
	}
	text, err := t.run(ctx, child, args.Prompt, c.CallID)

	// The child ends here whatever came of it, and the caller's own end waits
	// for that: two generations of a cancelled turn must not write on side by side.
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endGrace)
	defer cancel()
	if ctx.Err() != nil && child.Cancel("the turn that called it was cancelled") {
		_ = child.Driver().Settled(end)
	}
	if gone := t.agents.Remove(end, child); gone != nil && err == nil {
		err = gone
	}
	if err != nil {
		return tool.Result{Meta: meta(childID)}, err
	}
	return tool.Result{Text: text, Meta: meta(childID)}, nil
}

// run prompts the child, waits for it and returns its last words.
func (t *Tool) run(ctx context.Context, child *agent.Agent, prompt, callID string) (string, error) {
	err := child.Send(ctx, event.Message{ID: id.New(), Source: event.Source{Kind: sourceAgent, CallID: callID}, Text: prompt})
	if err == nil {
		err = child.Driver().Settled(ctx)
	}
	if err != nil {
		if ctx.Err() != nil {
			return "", refuse(CodeAborted, "the turn was cancelled while the subagent worked; what it did until then stands")
		}
		return "", fmt.Errorf("prompt subagent: %w", err)
	}
	if s := child.Status(); s.State == agent.Blocked {
		return "", refuse(CodeBlocked, "the subagent cannot start: %s", s.Reason)
	}
	end, words, err := last(child.Log())
	switch {
	case err != nil:
		return "", fmt.Errorf("read subagent's log: %w", err)
	case end.Kind == event.TurnCompleted && words != "":
		return words, nil
	case end.Kind == event.TurnCompleted:
		return "The subagent finished without a final message.", nil
	}
	said := "It said nothing before."
	if words != "" {
		said = "Its last words before: " + words
	}
	return "", refuse(CodeFailed, "the subagent's turn did not complete (%s). %s", strings.TrimSpace(end.Kind+" "+end.Message), said)
}

// last returns how the last turn of a log ended and the last text of its model.
func last(log *session.Log) (end event.TurnEnd, words string, err error) {
	for after := int64(-1); ; {
		events, err := log.Read(after, readMax)
		if err != nil || len(events) == 0 {
			return end, words, err
		}
		for _, e := range events {
			switch e.Type {
			case event.TypeTurnEnd:
				if end, err = event.DecodeTurnEnd(e.Data); err != nil {
					return end, words, err
				}
			case event.TypeAssistant:
				m, err := event.DecodeAssistant(e.Data)
				if err != nil {
					return end, words, err
				}
				if s := textOf(m); s != "" {
					words = s
				}
			}
		}
		after = events[len(events)-1].Seq
	}
}

func textOf(m event.Assistant) string {
	var out strings.Builder
	for _, b := range m.Blocks {
		if b.Type == event.BlockText {
			out.WriteString(b.Text)
		}
	}
	return strings.TrimSpace(out.String())
}

type arguments struct {
	Title  string `json:"title"`
	Prompt string `json:"prompt"`
}

func parse(raw string) (arguments, error) {
	var args arguments
	dec := json.NewDecoder(strings.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&args); err != nil {
		return args, refuse(CodeBadArguments, `arguments: %v: send {"prompt": "the whole task", "title": "a few words"}`, err)
	}
	switch {
	case strings.TrimSpace(args.Prompt) == "":
		return args, refuse(CodeBadArguments, "prompt: is empty: say what the subagent is to do")
	case len(args.Prompt) > promptMax:
		return args, refuse(CodeBadArguments, "prompt: is over %d bytes: name files for it to read instead", promptMax)
	}
	// A title is only for a list, so a bad one is mended rather than refused.
	title := []rune(strings.Join(strings.FieldsFunc(args.Title, func(r rune) bool { return !unicode.IsPrint(r) || r == ' ' }), " "))
	args.Title = string(title[:min(len(title), titleMax)])
	return args, nil
}

func refuse(code, format string, args ...any) *tool.Error {
	return &tool.Error{Name: errorName, Code: code, Message: fmt.Sprintf(format, args...)}
}

// meta tells views which session the child's is.
func meta(sessionID string) json.RawMessage {
	b, _ := json.Marshal(map[string]string{"sessionId": sessionID})
	return b
}
