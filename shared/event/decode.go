package event

import "meanwhile/shared/event/value"

// The decoders read an event's data as this program writes it; their errors
// name the field. Each takes Event.Data.

// DecodeTurnStart reads turn/start.
func DecodeTurnStart(data []byte) (TurnStart, error) {
	f := open(data, TypeTurnStart)
	d := TurnStart{Turn: f.int("turn", true)}
	return d, f.err
}

// DecodeTurnEnd reads turn/end.
func DecodeTurnEnd(data []byte) (TurnEnd, error) {
	f := open(data, TypeTurnEnd)
	r := f.v.Get("reason")
	d := TurnEnd{Turn: f.int("turn", true), Kind: r.Get("kind").Text(), Message: r.Get("message").Text()}
	return d, f.err
}

// DecodeStep reads step/start and step/end.
func DecodeStep(data []byte) (Step, error) {
	f := open(data, "step")
	d := Step{Turn: f.int("turn", true), Step: f.int("step", true)}
	return d, f.err
}

// DecodeRequestHeader reads request/header; tools that are not objects are left out.
func DecodeRequestHeader(data []byte) (RequestHeader, error) {
	f := open(data, TypeRequestHeader)
	h := f.v.Get("header")
	c := h.Get("config")
	d := RequestHeader{Provider: c.Get("provider").Text(), Model: c.Get("model").Text(),
		System: h.Get("system").Text(), Reason: f.v.Get("reason").Text()}
	if tools := h.Get("tools"); tools.Kind() == value.Array {
		d.Tools = []ToolSpec{}
		for _, t := range tools.Items() {
			if name, ok := t.Get("name").Str(); ok {
				d.Tools = append(d.Tools, ToolSpec{name, t.Get("description").Text(), t.Get("parameters").Bytes()})
			}
		}
	}
	return d, f.err
}

// DecodeUserMessage reads user/message.
func DecodeUserMessage(data []byte) (Message, error) {
	v, err := value.Parse(data)
	if err != nil {
		return Message{}, err
	}
	return MessageOf(v)
}

// DecodeAssistant reads assistant/message.
func DecodeAssistant(data []byte) (Assistant, error) {
	f := open(data, TypeAssistant)
	m := f.v.Get("message")
	d := Assistant{Turn: f.int("turn", true), Step: f.int("step", true), ID: m.Get("id").Text(),
		Interrupted: f.v.Get("interrupted").True()}
	for _, b := range m.Get("content").Items() {
		d.Blocks = append(d.Blocks, Block{Type: b.Get("type").Text(), Text: b.Get("text").Text(),
			CallID: b.Get("callId").Text(), Name: b.Get("name").Text(), Arguments: b.Get("arguments").Text()})
	}
	if u := f.v.Get("usage"); u.Kind() != value.Missing {
		d.Usage = u.Bytes()
	}
	return d, f.err
}

// DecodeToolCall reads tool/call.
func DecodeToolCall(data []byte) (ToolCall, error) {
	f := open(data, TypeToolCall)
	d := ToolCall{Turn: f.int("turn", true), Step: f.int("step", true), CallID: f.str("callId", true),
		Name: f.str("name", true), Arguments: f.str("arguments", true), RequestID: f.str("requestId", false)}
	return d, f.err
}

// DecodeToolResult reads tool/result; Text is its first text block.
func DecodeToolResult(data []byte) (ToolResult, error) {
	f := open(data, TypeToolResult)
	m, e := f.v.Get("message"), f.v.Get("error")
	d := ToolResult{Turn: f.int("turn", true), Step: f.int("step", true), MessageID: m.Get("id").Text(),
		CallID: m.Get("toolCallId").Text(), IsError: m.Get("isError").True(),
		ErrName: e.Get("name").Text(), ErrCode: e.Get("code").Text()}
	d.Text, _ = FirstText(m.Get("content"))
	if meta := f.v.Get("meta"); meta.Kind() != value.Missing {
		d.Meta = meta.Bytes()
	}
	if d.CallID == "" {
		f.keep(&FieldError{TypeToolResult, "message.toolCallId", "is empty"})
	}
	return d, f.err
}

// DecodePTCDispatch reads tool/ptc-dispatch; Text is its first text block.
func DecodePTCDispatch(data []byte) (PTCDispatch, error) {
	f := open(data, TypePTCDispatch)
	d := PTCDispatch{RootCallID: f.str("rootCallId", true), ParentCallID: f.str("parentCallId", true),
		SubCallID: f.str("subCallId", true), Name: f.str("name", true), IsError: f.v.Get("isError").True(),
		Arguments: f.v.Get("arguments").Bytes()}
	d.Text, _ = FirstText(f.v.Get("content"))
	return d, f.err
}

// DecodeSpliced reads agent/inbox/spliced.
func DecodeSpliced(data []byte) (Spliced, error) {
	f := open(data, TypeSpliced)
	d := Spliced{Target: f.str("target", true), Start: f.int("start", true),
		RemovedCount: f.int("removedCount", false), Outcome: f.str("outcome", false)}
	for _, v := range f.v.Get("inserted").Items() {
		m, merr := MessageOf(v)
		f.keep(merr)
		d.Inserted = append(d.Inserted, m)
	}
	return d, f.err
}

// open parses data; a document that is none wins over what is missing in it.
func open(data []byte, what string) *fields {
	v, err := value.Parse(data)
	return &fields{v: v, what: what, err: err}
}
