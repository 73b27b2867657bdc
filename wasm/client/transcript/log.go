package transcript

import (
	"meanwhile/shared/event"
	"meanwhile/shared/event/value"
	"meanwhile/shared/projection"
	"meanwhile/wasm/client/draft"
)

// Limits.
const (
	TurnsMax   = 2000
	NodesMax   = 20_000
	BytesMax   = 8 << 20
	clipMax    = 4000      // characters of a tool's arguments and result
	previewMax = 256 << 10 // bytes of unfinished text; the end is kept
)

type kind uint8

const (
	kUser kind = iota
	kText
	kReasoning
	kTool
	kAsk
	kReply
)

// node is one thing in a turn. text is the message, the tool's arguments or a
// reply that cannot be read.
type node struct {
	kind         kind
	seq, at      int64
	id, name, by string
	callID       string
	text         string
	source       value.Value
	interrupted  bool
	pairs        []pair
	result       *result
}

type pair struct {
	question projection.Question
	answer   projection.Answer
}

// result is a tool's recorded result; body is the text of an ask's, whole.
type result struct {
	text, code string
	failed     bool
	body       value.Value
}

type turn struct {
	i       int
	n       int64 // 0: messages before a turn
	rev     int64
	at      int64
	state   string
	message string
	steps   int64
	nodes   []*node
	open    map[string]bool // what the person chose
}

// Running is the state of a turn without an end.
const Running = "running"

type place struct {
	turn *turn
	node *node
	many bool // the call id stands more than once
}

// Log is one session as far as it was followed.
type Log struct {
	Header value.Value
	Title  string
	Seq    int64 // of the last event applied, -1 before the first
	Set    *projection.Set

	turns       []*turn
	dropped     int
	rev, reset  int64
	nodes, size int
	calls       map[string]*place // by call id, of calls kept
	withdrawing map[string]string // withdrawing call → the ask it names
	withdrawn   map[string]bool
	preview     string
}

// New is an empty log of the session that the header describes.
func New(header value.Value, h event.Header, rev int64) *Log {
	return &Log{Header: header, Title: h.Title, Seq: -1, Set: projection.NewSet(h), rev: rev + 1, reset: rev + 1,
		calls: map[string]*place{}, withdrawing: map[string]string{}, withdrawn: map[string]bool{}}
}

// Rev is the newest revision.
func (l *Log) Rev() int64 { return l.rev }

// Apply takes the next event. An event out of order, or one that contradicts
// the log, is an error; the log is then to be read anew.
func (l *Log) Apply(e event.Event) error {
	if e.Seq != l.Seq+1 {
		return &projection.LogError{Session: l.Header.Get("id").Text(), Seq: e.Seq, Why: "does not follow the one before"}
	}
	removed, inserted, err := l.Set.Inbox.Apply(e)
	if err != nil {
		return err
	}
	l.Seq = e.Seq
	l.Set.Replies.Apply(e, removed, inserted)
	l.rev++
	if id := l.Set.Questions.Apply(e); id != "" {
		defer l.Touch(id)
	}
	for _, m := range append(removed[:len(removed):len(removed)], inserted...) {
		l.Touch(m.Source.CallID)
	}
	data, err := value.Parse(e.Data)
	if err != nil {
		return err
	}
	l.add(e, data)
	l.trim()
	return nil
}

func (l *Log) add(e event.Event, data value.Value) {
	switch e.Type {
	case event.TypeTurnStart:
		n, _ := data.Get("turn").Int()
		t := l.last()
		if t == nil || t.n != 0 { // messages just before belong to the turn they open
			t = l.push(e.Time)
		}
		t.n, t.rev = n, l.rev
	case event.TypeTurnEnd:
		t := l.current(e.Time)
		t.state, t.message, t.rev = data.Get("reason").Get("kind").Text(), data.Get("reason").Get("message").Text(), l.rev
		if t.state == "" {
			t.state = event.TurnCompleted
		}
		l.preview = ""
	case event.TypeStepStart:
		t := l.current(e.Time)
		t.steps++
		t.rev = l.rev
	case event.TypeUserMessage:
		l.message(e, data)
	case event.TypeAssistant:
		l.preview = ""
		for _, b := range data.Get("message").Get("content").Items() {
			k := kText
			switch b.Get("type").Text() {
			case event.BlockText:
			case event.BlockReasoning:
				k = kReasoning
			default:
				continue
			}
			if text := b.Get("text").Text(); text != "" {
				l.put(e, &node{kind: k, text: text, interrupted: data.Get("interrupted").True()})
			}
		}
	case event.TypeToolCall:
		l.call(e, data.Get("callId").Text(), data.Get("name").Text(), data.Get("arguments").Text())
	case event.TypeToolResult:
		m := data.Get("message")
		text, _ := event.FirstText(m.Get("content"))
		l.settle(m.Get("toolCallId").Text(), text, data.Get("error").Get("code").Text(),
			m.Get("isError").True() || data.Get("error").Kind() == value.Object)
	case event.TypePTCDispatch:
		// A program's calls are its own business, but for what it asked a person.
		if data.Get("name").Text() != projection.ToolName {
			return
		}
		id := data.Get("subCallId").Text()
		l.call(e, id, projection.ToolName, string(data.Get("arguments").Bytes()))
		text, _ := event.FirstText(data.Get("content"))
		l.settle(id, text, "", data.Get("isError").True())
	}
}

func (l *Log) message(e event.Event, data value.Value) {
	m, err := event.MessageOf(data)
	if err != nil {
		return
	}
	n := &node{kind: kUser, id: m.ID, text: m.Text, source: data.Get("source")}
	if m.Source.Kind == event.SourceReply {
		n.kind, n.callID, n.by = kReply, m.Source.CallID, m.Source.By
		var ok bool
		if n.pairs, ok = readReply(m.Text); ok {
			n.text = ""
		}
	}
	l.put(e, n)
}

// readReply reads the payload of a reply into pairs.
func readReply(text string) ([]pair, bool) {
	v, err := value.ParseString(text)
	if err != nil {
		return nil, false
	}
	qs, p := projection.QuestionsOfWire(v.Get("questions"))
	answers, ok := projection.AnswersOf(v.Get("answers"))
	if p != nil || !ok || !paired(qs, answers) {
		return nil, false
	}
	pairs := make([]pair, len(qs))
	for i, q := range qs {
		pairs[i].question = q
		for _, a := range answers {
			if a.ID == q.ID {
				pairs[i].answer = a
			}
		}
	}
	return pairs, true
}

// paired reports whether each question has exactly one answer by id.
func paired(qs []projection.Question, answers []projection.Answer) bool {
	if len(qs) == 0 || len(qs) != len(answers) {
		return false
	}
	seen := make(map[string]bool, len(qs))
	for _, q := range qs {
		if seen[q.ID] {
			return false
		}
		seen[q.ID] = true
	}
	for _, a := range answers {
		if !seen[a.ID] {
			return false
		}
		seen[a.ID] = false
	}
	return true
}

func (l *Log) call(e event.Event, id, name, args string) {
	n := &node{kind: kTool, callID: id, name: name}
	switch name {
	case projection.ToolName:
		n.kind, n.text = kAsk, args
	case projection.WithdrawName:
		if v, err := value.ParseString(args); err == nil {
			l.withdrawing[id] = v.Get("callId").Text()
		}
		fallthrough
	default:
		n.text = draft.Cut(args, clipMax)
	}
	t := l.put(e, n)
	if p := l.calls[id]; p != nil {
		p.many = true
		l.bump(p.turn)
		p.turn, p.node = t, n
		return
	}
	l.calls[id] = &place{turn: t, node: n}
}

func (l *Log) settle(id, text, code string, failed bool) {
	p := l.calls[id]
	if p == nil {
		return
	}
	r := &result{code: code, failed: failed}
	if p.node.kind == kAsk {
		if v, err := value.ParseString(text); err == nil {
			r.body = v
		}
	}
	r.text = draft.Cut(text, clipMax)
	p.node.result = r
	l.grow(len(r.text))
	l.bump(p.turn)
	if target, ok := l.withdrawing[id]; ok {
		delete(l.withdrawing, id)
		if v, err := value.ParseString(text); err == nil && !failed && v.Get("withdrawn").True() {
			l.withdrawn[target] = true
			l.Touch(target)
		}
	}
}

// Preview shows unfinished text of the running turn and gives back what was
// kept of it.
func (l *Log) Preview(text string) string {
	t := l.last()
	if t == nil || t.state != Running {
		return ""
	}
	if len(text) > previewMax {
		cut := len(text) - previewMax
		for cut < len(text) && text[cut]&0xc0 == 0x80 {
			cut++
		}
		text = text[cut:]
	}
	l.preview = text
	l.bump(t)
	return text
}

// Touch marks the row of an ask as changed.
func (l *Log) Touch(callID string) {
	if p := l.calls[callID]; p != nil {
		l.bump(p.turn)
	}
}

func (l *Log) bump(t *turn) {
	l.rev++
	t.rev = l.rev
}

// Open opens or closes a disclosure.
func (l *Log) Open(key string, open bool) {
	for _, t := range l.turns {
		if t.owns(key) {
			if t.open == nil {
				t.open = map[string]bool{}
			}
			t.open[key] = open
			l.bump(t)
			return
		}
	}
}

func (l *Log) last() *turn {
	if len(l.turns) == 0 {
		return nil
	}
	return l.turns[len(l.turns)-1]
}

// current is the turn that what comes now belongs to.
func (l *Log) current(at int64) *turn {
	if t := l.last(); t != nil && t.state == Running {
		return t
	}
	return l.push(at)
}

func (l *Log) push(at int64) *turn {
	t := &turn{i: l.dropped + len(l.turns), at: at, state: Running, rev: l.rev}
	l.turns = append(l.turns, t)
	return t
}

func (l *Log) put(e event.Event, n *node) *turn {
	t := l.current(e.Time)
	n.seq, n.at = e.Seq, e.Time
	t.nodes = append(t.nodes, n)
	t.rev = l.rev
	l.nodes++
	l.grow(len(n.text))
	return t
}

func (l *Log) grow(n int) { l.size += n }

// trim drops the oldest turns beyond the limits.
func (l *Log) trim() {
	cut := 0
	for cut < len(l.turns)-1 && (len(l.turns)-cut > TurnsMax || l.nodes > NodesMax || l.size > BytesMax) {
		for _, n := range l.turns[cut].nodes {
			l.nodes--
			l.size -= len(n.text)
			if n.result != nil {
				l.size -= len(n.result.text)
			}
			if p := l.calls[n.callID]; p != nil && p.node == n {
				delete(l.calls, n.callID)
				delete(l.withdrawn, n.callID)
			}
		}
		cut++
	}
	if cut > 0 {
		l.turns = append(l.turns[:0:0], l.turns[cut:]...)
		l.dropped += cut
	}
}
