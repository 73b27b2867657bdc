package transcript

import (
	"strconv"
	"strings"

	"meanwhile/shared/event/value"
)

// Cards tells which card an ask row can open: by call id, or, for "", the one
// unkeyed card of the session.
type Cards func(callID string) (key string, ok bool)

// AppendTurns writes the members total, base, reset and turns of the view:
// what changed after the revision since.
func (l *Log) AppendTurns(w *value.Writer, since int64, cards Cards) {
	w.IntField("rev", l.rev)
	w.IntField("total", int64(l.dropped+len(l.turns)))
	w.IntField("base", int64(l.dropped))
	if since < l.reset || since > l.rev {
		w.BoolField("reset", true)
		since = 0
	}
	w.Name("turns")
	w.BeginArray()
	for _, t := range l.turns {
		if t.rev > since {
			l.appendTurn(w, t, cards)
		}
	}
	w.EndArray()
}

func (t *turn) key() string { return "t" + strconv.Itoa(t.i) }

func (t *turn) groupKey(n *node) string {
	return "g" + strconv.Itoa(t.i) + "." + strconv.FormatInt(n.seq, 10)
}

func (t *turn) owns(key string) bool {
	return key == t.key() || strings.HasPrefix(key, "g"+strconv.Itoa(t.i)+".")
}

func (t *turn) isOpen(key string) bool {
	if open, ok := t.open[key]; ok {
		return open
	}
	return t.state == Running
}

func (n *node) process() bool { return n.kind != kUser && n.kind != kText }

func (l *Log) appendTurn(w *value.Writer, t *turn, cards Cards) {
	w.Begin()
	w.IntField("i", int64(t.i))
	w.IntField("rev", t.rev)
	if t.n > 0 {
		w.IntField("turn", t.n)
	}
	w.StrField("state", t.state)
	w.IntField("at", t.at)
	w.OptField("message", t.message)
	w.Name("rows")
	w.BeginArray()
	l.appendRows(w, t, cards)
	if l.preview != "" && t == l.last() {
		w.Begin()
		w.StrField("k", "preview")
		w.StrField("text", l.preview)
		w.End()
	}
	w.EndArray()
	w.End()
}

func (l *Log) appendRows(w *value.Writer, t *turn, cards Cards) {
	lead := 0
	for lead < len(t.nodes) && t.nodes[lead].kind == kUser {
		l.appendNode(w, t, t.nodes[lead], "", cards)
		lead++
	}
	rest := t.nodes[lead:]
	final := len(rest) // the last text stands outside, unless more work came after it
	for i := len(rest) - 1; i >= 0 && !rest[i].process(); i-- {
		if rest[i].kind == kText {
			final = i
		}
	}
	folds := false
	for _, n := range rest[:final] {
		folds = folds || n.kind != kUser
	}
	key := t.key()
	if folds {
		w.Begin()
		w.StrField("k", "turn")
		w.StrField("key", key)
		w.BoolField("open", t.isOpen(key))
		w.IntField("steps", t.steps)
		appendCounts(w, rest)
		w.End()
	}
	for i := 0; i < len(rest); {
		n := rest[i]
		run := i
		for run < len(rest) && rest[run].process() {
			run++
		}
		switch {
		case run > i:
			if t.isOpen(key) {
				l.appendGroup(w, t, rest[i:run], cards)
			}
			i = run
			continue
		case n.kind == kText && i < final:
			if t.isOpen(key) {
				l.appendNode(w, t, n, key, cards)
			}
		default:
			l.appendNode(w, t, n, "", cards)
		}
		i++
	}
}

func appendCounts(w *value.Writer, nodes []*node) {
	tools, replies := 0, 0
	for _, n := range nodes {
		switch n.kind {
		case kTool, kAsk:
			tools++
		case kReply:
			replies++
		}
	}
	w.IntField("n", int64(len(nodes)))
	w.IntField("tools", int64(tools))
	w.IntField("replies", int64(replies))
}

func (l *Log) appendGroup(w *value.Writer, t *turn, nodes []*node, cards Cards) {
	key := t.groupKey(nodes[0])
	open := t.isOpen(key)
	w.Begin()
	w.StrField("k", "group")
	w.StrField("key", key)
	w.BoolField("open", open)
	appendCounts(w, nodes)
	w.End()
	if open {
		for _, n := range nodes {
			l.appendNode(w, t, n, key, cards)
		}
	}
}

func (l *Log) appendNode(w *value.Writer, t *turn, n *node, in string, cards Cards) {
	w.Begin()
	switch n.kind {
	case kUser:
		w.StrField("k", "user")
		w.IntField("seq", n.seq)
		w.StrField("id", n.id)
		w.IntField("at", n.at)
		w.Name("source")
		w.Value(n.source)
		w.StrField("text", n.text)
	case kText:
		w.StrField("k", "text")
		w.StrField("text", n.text)
		if n.interrupted {
			w.BoolField("interrupted", true)
		}
	case kReasoning:
		w.StrField("k", "reasoning")
		w.StrField("text", n.text)
	case kTool:
		w.StrField("k", "tool")
		w.StrField("callId", n.callID)
		w.StrField("name", n.name)
		w.StrField("state", t.toolState(n))
		w.StrField("args", n.text)
		if n.result != nil {
			w.OptField("result", n.result.text)
			w.OptField("code", n.result.code)
		}
	case kAsk:
		l.appendAsk(w, t, n, cards)
	case kReply:
		w.StrField("k", "reply")
		w.IntField("seq", n.seq)
		w.StrField("id", n.id)
		w.StrField("callId", n.callID)
		w.OptField("by", n.by)
		w.IntField("at", n.at)
		appendPairs(w, n)
	}
	w.OptField("in", in)
	w.End()
}

func (t *turn) toolState(n *node) string {
	switch {
	case n.result == nil && t.state == Running:
		return Running
	case n.result == nil || stateOf(n.result.code) == Interrupted:
		return Interrupted
	case n.result.failed:
		return Failed
	}
	return "done"
}

func (l *Log) appendAsk(w *value.Writer, t *turn, n *node, cards Cards) {
	a := l.ask(t, n)
	w.StrField("k", "ask")
	w.StrField("callId", n.callID)
	w.StrField("ask", a.State)
	w.IntField("n", int64(a.N))
	w.IntField("of", int64(a.Of))
	w.OptField("code", a.Code)
	key, actions := "", []string(nil)
	switch a.State {
	case Waiting, Pending:
		id := n.callID
		if _, listed := l.Set.Questions.Active(id); !listed && !l.alone(n) {
			break
		} else if !listed {
			id = ""
		}
		var ok bool
		if key, ok = cards(id); !ok {
			break
		}
		actions = []string{"open"}
		if a.State == Pending {
			actions[0] = "answer"
		}
	case Queued:
		key, _ = cards(n.callID)
		if a.Answers != nil {
			actions = append(actions, "view")
		}
		if key != "" {
			actions = append(actions, "cancel")
		}
	case Answered:
		actions = []string{"view"}
	}
	w.Name("actions")
	w.BeginArray()
	for _, s := range actions {
		w.Str(s)
	}
	w.EndArray()
	w.OptField("key", key)
}

// alone reports whether n is the one running ask that the projection does not
// track: only then can the session's one unkeyed card be its own.
func (l *Log) alone(n *node) bool {
	if t := l.last(); t != nil && t.state == Running {
		for _, o := range t.nodes {
			if _, listed := l.Set.Questions.Active(o.callID); o != n && o.kind == kAsk && o.result == nil && !listed {
				return false
			}
		}
		return true
	}
	return false
}

func appendPairs(w *value.Writer, n *node) {
	if n.pairs == nil {
		w.StrField("raw", n.text)
		return
	}
	w.Name("pairs")
	w.BeginArray()
	for _, p := range n.pairs {
		w.Begin()
		w.StrField("question", p.question.Question)
		if p.question.Header != nil {
			w.StrField("header", *p.question.Header)
		}
		w.Name("selected")
		w.BeginArray()
		for _, s := range p.answer.Selected {
			w.Str(s)
		}
		w.EndArray()
		if p.answer.Custom != nil {
			w.StrField("custom", *p.answer.Custom)
		}
		w.End()
	}
	w.EndArray()
}
