package replay

import (
	"encoding/json"
	"slices"
	"strings"
	"text/template"

	"meanwhile/host/llm"
)

// The kind of the JSON text, and of the source, that a late answer has.
const (
	replyKind   = "answer_to_pending_question"
	replySource = "user-question-reply"
)

// view is what the rules and templates see of one request.
type view struct {
	messages []llm.Message
	last     llm.Message
	text     string // of last
	reply    bool   // last is a late answer
	tool     string // the tool whose result last is, if it is one
	pending  bool   // that result says pending
	prompt   string
	output   string // text of the last tool result
	called   []string
	callID   string
	answers  []answer
}

type answer struct {
	ID       string   `json:"id"`
	Selected []string `json:"selected"`
	Custom   string   `json:"custom"`
}

// text is what was chosen or written.
func (a answer) text() string {
	all := slices.Clone(a.Selected)
	if a.Custom != "" {
		all = append(all, a.Custom)
	}
	if len(all) == 0 {
		return "(skipped)"
	}
	return strings.Join(all, ", ")
}

// answerText is the JSON of both a tool result and a late answer.
type answerText struct {
	Kind    string   `json:"kind"`
	CallID  string   `json:"callId"`
	Pending bool     `json:"pending"`
	Answers []answer `json:"answers"`
}

func look(req llm.Request) *view {
	v := &view{messages: req.Messages}
	tools := map[string]string{} // call id → tool
	for _, m := range req.Messages {
		v.last, v.text = m, m.Text()
		v.reply, v.tool, v.pending = false, "", false
		var a answerText
		parsed := json.Unmarshal([]byte(v.text), &a) == nil
		switch m.Role {
		case llm.RoleAssistant:
			for _, c := range m.ToolCalls() {
				tools[c.CallID] = c.Name
				v.called = append(v.called, c.Name)
			}
		case llm.RoleTool:
			v.tool, v.output = tools[m.ToolCallID], v.text
			v.pending = parsed && a.Pending
			if parsed && a.Answers != nil {
				v.callID, v.answers = m.ToolCallID, a.Answers
			}
		case llm.RoleUser:
			// Without a source only the text can tell; a model sees no more.
			v.reply = m.Source == replySource || m.Source == "" && parsed && a.Kind == replyKind
			if v.reply {
				v.callID, v.answers = a.CallID, a.Answers
			} else {
				v.prompt, v.called = v.text, nil
			}
		}
	}
	return v
}

// holds reports whether all conditions of a rule hold.
func (v *view) holds(w *when) bool {
	is := func(want *bool, got bool) bool { return want == nil || *want == got }
	result := v.last.Role == llm.RoleTool
	switch {
	case w.Last != "" && w.Last != string(v.last.Role),
		w.Source != "" && w.Source != v.last.Source,
		!is(w.Reply, v.reply),
		w.Tool != "" && w.Tool != v.tool,
		w.Pending != nil && (!result || *w.Pending != v.pending),
		w.Failed != nil && (!result || *w.Failed != v.last.IsError),
		!contains(v.text, w.Contains),
		!w.matches.MatchString(v.text):
		return false
	}
	for _, name := range w.Called {
		if !slices.Contains(v.called, name) {
			return false
		}
	}
	for _, name := range w.Uncalled {
		if slices.Contains(v.called, name) {
			return false
		}
	}
	return w.Earlier == "" || len(v.messages) > 0 && slices.ContainsFunc(v.messages[:len(v.messages)-1], func(m llm.Message) bool {
		return contains(m.Text(), w.Earlier)
	})
}

func contains(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}

func (v *view) funcs() template.FuncMap {
	return template.FuncMap{
		"last":   func() string { return v.text },
		"output": func() string { return v.output },
		"prompt": func() string { return v.prompt },
		"callId": func() string { return v.callID },
		"answer": func(id string) string {
			for _, a := range v.answers {
				if a.ID == id {
					return a.text()
				}
			}
			return "(no answer)"
		},
		"answers": func() string {
			all := make([]string, len(v.answers))
			for i, a := range v.answers {
				all[i] = a.ID + ": " + a.text()
			}
			return strings.Join(all, "; ")
		},
	}
}
