package event

import "meanwhile/shared/event/value"

// Turn and step numbers start at 1 and grow by one; steps start anew in a turn.

// The kinds of a turn's end. TurnInterrupted is written by repair alone.
const (
	TurnCompleted   = "completed"
	TurnAborted     = "aborted"
	TurnError       = "error"
	TurnMaxTokens   = "max-tokens"
	TurnBlocked     = "blocked"
	TurnInterrupted = "interrupted"
)

// Codes of a call whose result repair had to write.
const (
	CodeOutcomeUnknown = "TOOL_OUTCOME_UNKNOWN"
	CodeNotStarted     = "TOOL_NOT_STARTED"
)

// TurnStart is the data of turn/start.
type TurnStart struct{ Turn int64 }

// Draft encodes it.
func (d TurnStart) Draft() Draft {
	return Draft{TypeTurnStart, object(func(w *value.Writer) { w.IntField("turn", d.Turn) })}
}

// TurnEnd is the data of turn/end. Message says more for a person, if there is more.
type TurnEnd struct {
	Turn    int64
	Kind    string
	Message string
}

// Draft encodes it.
func (d TurnEnd) Draft() Draft {
	return Draft{TypeTurnEnd, object(func(w *value.Writer) {
		w.IntField("turn", d.Turn)
		w.Name("reason")
		w.Begin()
		w.StrField("kind", d.Kind)
		w.OptField("message", d.Message)
		w.End()
	})}
}

// Step is the data of step/start and step/end.
type Step struct{ Turn, Step int64 }

// StartDraft encodes a step/start.
func (d Step) StartDraft() Draft { return Draft{TypeStepStart, d.data()} }

// EndDraft encodes a step/end.
func (d Step) EndDraft() Draft { return Draft{TypeStepEnd, d.data()} }

func (d Step) data() []byte {
	return object(func(w *value.Writer) { w.IntField("turn", d.Turn); w.IntField("step", d.Step) })
}

// The reasons of a request/header.
const (
	HeaderInitial = "initial"
	HeaderResume  = "resume"
	HeaderChange  = "change"
)

// RequestHeader is the data of request/header: what every model request that
// follows has in common.
type RequestHeader struct {
	Provider, Model string
	System          string
	Tools           []ToolSpec
	Reason          string
}

// ToolSpec is one tool as the model is told of it; Parameters is a JSON Schema.
type ToolSpec struct {
	Name, Description string
	Parameters        []byte
}

// Same reports whether two headers differ in nothing but the reason.
func (d RequestHeader) Same(o RequestHeader) bool {
	d.Reason, o.Reason = "", ""
	return string(d.Draft().Data) == string(o.Draft().Data)
}

// Draft encodes it.
func (d RequestHeader) Draft() Draft {
	return Draft{TypeRequestHeader, object(func(w *value.Writer) {
		w.Name("header")
		w.Begin()
		w.Name("config")
		w.Begin()
		w.StrField("provider", d.Provider)
		w.StrField("model", d.Model)
		w.End()
		w.OptField("system", d.System)
		if d.Tools != nil {
			w.Name("tools")
			w.BeginArray()
			for _, t := range d.Tools {
				w.Begin()
				w.StrField("name", t.Name)
				w.StrField("description", t.Description)
				w.Name("parameters")
				w.Raw(t.Parameters)
				w.End()
			}
			w.EndArray()
		}
		w.End()
		w.StrField("reason", d.Reason)
	})}
}

// ToolCall is the data of tool/call. Arguments is the raw JSON text that the
// model produced; RequestID is an outside agent's own name for the call.
type ToolCall struct {
	Turn, Step int64
	CallID     string
	Name       string
	Arguments  string
	RequestID  string
}

// Draft encodes it.
func (d ToolCall) Draft() Draft {
	return Draft{TypeToolCall, object(func(w *value.Writer) {
		w.IntField("turn", d.Turn)
		w.IntField("step", d.Step)
		w.StrField("callId", d.CallID)
		w.StrField("name", d.Name)
		w.StrField("arguments", d.Arguments)
		w.OptField("requestId", d.RequestID)
	})}
}

// ToolResult is the data of tool/result. Text is its one text block. ErrName
// and ErrCode are set together when the tool refused or failed; Meta is one
// JSON document or nil.
type ToolResult struct {
	Turn, Step       int64
	MessageID        string
	CallID           string
	IsError          bool
	Text             string
	ErrName, ErrCode string
	Meta             []byte
}

// Draft encodes it.
func (d ToolResult) Draft() Draft {
	return Draft{TypeToolResult, object(func(w *value.Writer) {
		w.IntField("turn", d.Turn)
		w.IntField("step", d.Step)
		w.Name("message")
		w.Begin()
		w.StrField("id", d.MessageID)
		w.StrField("role", "tool")
		w.StrField("toolCallId", d.CallID)
		w.BoolField("isError", d.IsError)
		textContent(w, d.Text)
		w.End()
		if d.ErrCode != "" {
			w.Name("error")
			w.Begin()
			w.StrField("name", d.ErrName)
			w.StrField("code", d.ErrCode)
			w.End()
		}
		if d.Meta != nil {
			w.Name("meta")
			w.Raw(d.Meta)
		}
	})}
}

// PTCDispatch is the data of tool/ptc-dispatch: one call made by a program that
// a tool ran. Arguments is a JSON object.
type PTCDispatch struct {
	RootCallID, ParentCallID, SubCallID string
	Name                                string
	Arguments                           []byte
	IsError                             bool
	Text                                string
}

// Draft encodes it.
func (d PTCDispatch) Draft() Draft {
	return Draft{TypePTCDispatch, object(func(w *value.Writer) {
		w.StrField("rootCallId", d.RootCallID)
		w.StrField("parentCallId", d.ParentCallID)
		w.StrField("subCallId", d.SubCallID)
		w.StrField("name", d.Name)
		w.Name("arguments")
		w.Raw(d.Arguments)
		w.BoolField("isError", d.IsError)
		textContent(w, d.Text)
	})}
}

// The inbox targets.
const (
	NextStep = "next-step"
	NextTurn = "next-turn"
)

// OutcomeCanceled marks a splice whose removed messages will never be read.
const OutcomeCanceled = "canceled"

// Spliced is the data of agent/inbox/spliced: at Start of the Target queue
// RemovedCount messages go and Inserted ones come.
type Spliced struct {
	Target       string
	Start        int64
	RemovedCount int64
	Inserted     []Message
	Outcome      string
}

// Draft encodes it.
func (d Spliced) Draft() Draft {
	return Draft{TypeSpliced, object(func(w *value.Writer) {
		w.StrField("target", d.Target)
		w.IntField("start", d.Start)
		if d.RemovedCount > 0 {
			w.IntField("removedCount", d.RemovedCount)
		}
		w.Name("inserted")
		w.BeginArray()
		for _, m := range d.Inserted {
			w.Raw(m.Bytes())
		}
		w.EndArray()
		w.OptField("outcome", d.Outcome)
	})}
}

// EndSeedDraft is session/end-seed, the last event a fork inherits.
func EndSeedDraft() Draft { return Draft{TypeEndSeed, []byte("{}")} }

func object(fill func(*value.Writer)) []byte {
	var w value.Writer
	w.Begin()
	fill(&w)
	w.End()
	return w.Bytes()
}

func textContent(w *value.Writer, text string) {
	w.Name("content")
	w.BeginArray()
	w.Begin()
	w.StrField("type", "text")
	w.StrField("text", text)
	w.End()
	w.EndArray()
}
