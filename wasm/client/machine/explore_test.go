package machine

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

var exploreDepth = flag.Int("explore.depth", 7, "longest order of events that TestEveryOrder walks")

// world is one timed ask, a host that keeps the rules, one other client, and the
// machine. What the host says to this client waits in two queues, as two streams
// of one socket: answers and hints in one, list rows in the other. What the
// client says waits too, and is lost with the connection.
type world struct {
	*rig
	phase    string // open, continued, queued, settled, gone
	by       string // who is queued or recorded: me, phone
	replyID  string
	seq      int64
	up       bool
	pending  bool // a delivery to this client that was not answered
	delivery int
	client   int
	toHost   []doc
	notes    []doc
	rows     []doc
	accepted map[string]string // submission id → fate

	// What the person did, and what left.
	edited            bool
	presses           int
	pressed           bool // a press since the last answer that left
	ids               map[string]bool
	waterfalls, lates int
	used              map[string]int
}

func newWorld(t testing.TB) *world {
	w := &world{rig: newRig(t), phase: "open", accepted: map[string]string{}, ids: map[string]bool{}, used: map[string]int{}}
	w.rig.init(nil)
	w.connect(false)
	return w
}

func (w *world) row() doc {
	switch w.phase {
	case "open", "continued":
		return row("s", w.seq, active("c1", w.phase))
	case "queued":
		return withReply(row("s", w.seq, active("c1", "continued")), w.replyID, "c1", replyText("c1", w.batch()))
	}
	return row("s", w.seq)
}

func (w *world) batch() doc {
	if w.by == "me" {
		return choice("SQLite")
	}
	return choice("Postgres")
}

// change is the host's log moving: a row for the list, maybe a hint before it.
func (w *world) change(phase, by string) {
	was := w.phase
	w.phase, w.by = phase, by
	w.seq++
	if was == "open" && w.up {
		o := doc{"eventId": "e1", "kind": "result", "by": by}
		if by == "me" {
			o["by"] = fmt.Sprint("me", w.client)
		}
		switch phase {
		case "continued":
			o = doc{"eventId": "e1", "kind": "rejected", "code": "ASK_TIMED_OUT", "by": "phone"}
		case "gone":
			o = doc{"eventId": "e1", "kind": "cancelled", "code": "ASK_WITHDRAWN"}
		}
		if w.pending {
			w.notes = append(w.notes, doc{"type": "cancel", "id": fmt.Sprint("d", w.delivery)})
			w.pending = false
		}
		w.notes = append(w.notes, doc{"type": "notify", "method": "remote/settled", "params": o})
	}
	if w.up {
		w.rows = append(w.rows, w.row())
	}
}

// connect is up, the list and the deliveries, in either order, then synced.
func (w *world) connect(deliveryFirst bool) {
	w.up = true
	w.client++
	w.do(doc{"type": "up", "clientId": fmt.Sprint("me", w.client), "scopes": []string{"read", "answer"}, "protocol": 1, "sha256": "a", "build": doc{"sha256": "a"}})
	list := func() {
		w.do(doc{"type": "item", "id": w.callID("host/follow"), "value": doc{"sessions": []doc{w.row()}}})
	}
	if !deliveryFirst {
		list()
	}
	events := []string{}
	if w.phase == "open" {
		w.delivery++
		w.pending = true
		events = append(events, "e1")
		w.do(doc{"type": "request", "id": fmt.Sprint("d", w.delivery), "method": "user-questions/request", "params": doc{"eventId": "e1", "sessionId": "s",
			"request": doc{"questions": []doc{ask("db")}, "wait": doc{"callId": "c1", "timed": true}}}})
	}
	w.do(doc{"type": "notify", "method": "remote/synced", "params": doc{"eventIds": events}})
	if deliveryFirst {
		list()
	}
}

// do steps the machine and takes in what it wants done.
func (w *world) do(in doc) {
	for _, f := range w.step(in) {
		switch f["do"] {
		case "respond", "call":
			if f["post"] == true {
				w.step(doc{"type": "error", "id": f["id"], "error": doc{"code": -32001}})
				continue
			}
			w.leaving(f)
			w.toHost = append(w.toHost, f)
		case "stream":
			switch f["method"] {
			case "userQuestions/attachWait":
				if w.phase == "open" {
					w.do(doc{"type": "item", "id": f["id"], "value": doc{"remainingMs": 60_000}})
				}
			case "session/follow":
				w.toHost = append(w.toHost, f)
			}
		}
	}
}

// leaving checks every answer at the moment it leaves.
func (w *world) leaving(f doc) {
	_, result := f["result"]
	late := f["method"] == "userQuestions/answer"
	if !result && !late {
		return
	}
	if w.presses == 0 {
		w.t.Fatalf("an answer left that nobody submitted: %v", f)
	}
	b, _ := json.Marshal(f)
	if !strings.Contains(string(b), `"SQLite"`) {
		w.t.Fatalf("not the answer that was submitted: %s", b)
	}
	if late {
		id := f["params"].(doc)["submissionId"].(string)
		if !w.ids[id] && !w.pressed {
			w.t.Fatalf("a second submission of one press: %s", b)
		}
		w.ids[id] = true
		w.lates++
	} else {
		w.waterfalls++
	}
	w.pressed = false
}

// hear is the host taking the oldest thing this client said.
func (w *world) hear() {
	f := w.toHost[0]
	w.toHost = w.toHost[1:]
	reply := func(v doc) { w.notes = append(w.notes, doc{"type": "result", "id": f["id"], "result": v}) }
	switch f["method"] {
	case "userQuestions/answer":
		id := f["params"].(doc)["submissionId"].(string)
		switch {
		case w.accepted[id] != "":
			reply(doc{"accepted": true, "messageId": id, "state": w.accepted[id]})
		case w.phase == "continued":
			w.accepted[id] = "queued"
			w.replyID = id
			w.change("queued", "me")
			reply(doc{"accepted": true, "messageId": id, "state": "queued"})
		case w.phase == "queued":
			w.notes = append(w.notes, doc{"type": "error", "id": f["id"], "error": doc{"data": doc{"code": "REPLY_QUEUED"}}})
		default:
			reply(doc{"accepted": false})
		}
	case "session/follow":
		q := doc{"active": []doc{}, "settled": []doc{}}
		inbox := doc{"next-step": []doc{}}
		switch w.phase {
		case "settled":
			q["settled"] = []doc{{"callId": "c1", "answers": []doc{w.batch()}}}
		case "queued":
			inbox["next-step"] = []doc{reply2(w.replyID, w.batch())}
			fallthrough
		case "open", "continued":
			state := "continued"
			if w.phase == "open" {
				state = "open"
			}
			q["active"] = []doc{active("c1", state)}
		}
		replies := []doc{}
		for _, id := range slices.Sorted(maps.Keys(w.accepted)) {
			replies = append(replies, doc{"id": id, "callId": "c1", "fate": w.accepted[id]})
		}
		w.notes = append(w.notes, doc{"type": "item", "id": f["id"], "value": doc{"header": doc{}, "seq": w.seq,
			"projections": doc{"userQuestions": q, "inbox": inbox, "replies": replies}}})
	default: // an outcome of the waterfall
		if w.phase != "open" || f["id"] != fmt.Sprint("d", w.delivery) || !w.pending {
			return
		}
		w.pending = false
		if _, ok := f["result"]; ok {
			w.change("settled", "me")
		} else if f["error"].(doc)["data"].(doc)["code"] == "ASK_TIMED_OUT" {
			w.change("continued", "")
		}
	}
}

func reply2(id string, a doc) doc { return reply(id, "c1", replyText("c1", a)) }

// moves are what may happen next, in a fixed order; each has a budget.
func (w *world) moves() []string {
	var out []string
	can := func(name string, budget int, ok bool) {
		if ok && w.used[name] < budget {
			out = append(out, name)
		}
	}
	can("edit", 1, true)
	can("submit", 3, w.edited)
	can("hear", 99, w.up && len(w.toHost) > 0)
	can("note", 99, w.up && len(w.notes) > 0)
	can("row", 99, w.up && len(w.rows) > 0)
	can("expire here", 1, true)
	can("expire", 1, w.phase == "open")
	can("phone", 1, w.phase == "open" || w.phase == "continued")
	can("admit", 1, w.phase == "queued")
	can("discard", 1, w.phase == "queued")
	can("withdraw", 1, w.phase == "open" || w.phase == "continued")
	can("down", 1, w.up)
	can("up, list first", 1, !w.up)
	can("up, deliveries first", 1, !w.up)
	return out
}

func (w *world) move(name string) {
	w.used[name]++
	switch name {
	case "edit":
		w.do(doc{"type": "act", "key": key, "act": "select", "q": 0, "o": 1})
		w.edited = w.edited || w.shows()
	case "submit":
		w.presses++
		w.pressed = true
		w.do(doc{"type": "act", "key": key, "act": "submit"})
		w.do(doc{"type": "act", "key": key, "act": "submit"}) // two clicks
		w.pressed = false
	case "hear":
		w.hear()
	case "note":
		n := w.notes[0]
		w.notes = w.notes[1:]
		w.do(n)
	case "row":
		n := w.rows[0]
		w.rows = w.rows[1:]
		w.do(doc{"type": "item", "id": w.callID("host/follow"), "value": doc{"upsert": []doc{n}}})
	case "expire here":
		for range 13 {
			w.now.Wall += 4900
			w.now.Mono += 4900
			w.do(doc{"type": "tick"})
		}
	case "expire":
		w.change("continued", "")
	case "phone":
		if w.phase == "open" {
			w.change("settled", "phone")
		} else {
			w.replyID = "p1"
			w.change("queued", "phone")
		}
	case "admit":
		if w.by == "me" {
			w.accepted[w.replyID] = "admitted"
		}
		w.change("settled", w.by)
	case "discard":
		if w.by == "me" {
			w.accepted[w.replyID] = "discarded"
		}
		w.change("continued", "")
	case "withdraw":
		w.change("gone", "")
	case "down":
		w.up, w.pending = false, false
		w.toHost, w.notes, w.rows = nil, nil, nil
		w.do(doc{"type": "down"})
	case "up, list first":
		w.connect(false)
	case "up, deliveries first":
		w.connect(true)
	}
	if w.edited && !w.shows() && !(w.by == "me" && (w.phase == "settled" || w.phase == "queued")) {
		w.t.Fatalf("the text is lost: host %s by %s, card %v", w.phase, w.by, w.card(key))
	}
}

// shows reports whether the person can still see what they chose.
func (w *world) shows() bool {
	c := w.card(key)
	qs, _ := c["questions"].([]any)
	if len(qs) == 0 {
		return false
	}
	q := qs[0].(doc)
	for _, i := range q["selected"].([]any) {
		if q["options"].([]any)[int(i.(float64))].(doc)["label"] == "SQLite" {
			return true
		}
	}
	return false
}

// settle lets everything in flight arrive, and checks that the card says what
// the host's log says.
func (w *world) settle() {
	if !w.up {
		w.move("up, list first")
	}
	for i := 0; len(w.toHost)+len(w.notes)+len(w.rows) > 0; i++ {
		if i > 50 {
			w.t.Fatalf("it never comes to rest: %v", w.toHost)
		}
		switch {
		case len(w.toHost) > 0:
			w.move("hear")
		case len(w.rows) > 0:
			w.move("row")
		default:
			w.move("note")
		}
	}
	c := w.card(key)
	state, _ := c["state"].(string)
	busy := fmt.Sprint(c["busy"])
	ended, _ := c["ended"].(doc)
	reason := fmt.Sprint(ended["reason"])
	ok := c["busy"] == nil
	switch w.phase {
	case "open", "continued", "queued":
		ok = ok && state == w.phase
		if w.phase == "open" {
			ok = ok && (c["channel"] == "ready") == w.pending
		}
		if w.phase == "continued" {
			ok = ok && c["submit"] == true
		}
	case "settled":
		switch {
		case w.by == "me":
			ok = ok && state == "answered" && reason == "answered" && len(w.stored) == 0
		case w.edited:
			ok = ok && state == "ended" && reason == "answered-elsewhere"
		default:
			ok = ok && (state == "answered" || state == "")
		}
	case "gone":
		ok = ok && (state == "ended" && w.edited || state == "" && !w.edited)
	}
	if !ok {
		w.t.Fatalf("at rest: host %s by %q, edited %v; card %s busy %s, reason %s, channel %v, hint %v", w.phase, w.by, w.edited, state, busy, reason,
			c["channel"], c["hint"])
	}
}

func (w *world) print() string {
	b, _ := json.Marshal([]any{w.card(key), w.phase, w.by, w.up, w.pending, w.toHost, w.notes, w.rows, w.accepted, w.used["submit"], w.used["edit"],
		w.used["expire"], w.used["phone"], w.used["admit"], w.used["discard"], w.used["withdraw"], w.used["down"], w.used["expire here"], w.presses})
	return string(b)
}

// TestEveryOrder walks every order of edit, submit, expiry here and there,
// another client's answer, withdrawal, admission, discard and loss of the
// connection, with every delay of what is in flight, to a depth.
func TestEveryOrder(t *testing.T) {
	depth := *exploreDepth
	if testing.Short() {
		depth = 5
	}
	seen := map[string]int{}
	states := 0
	path := []string{}
	var fail = &failing{TB: t}
	var walk func(left int)
	replay := func() *world {
		fail.path = path
		w := newWorld(fail)
		for _, m := range path {
			w.move(m)
		}
		return w
	}
	walk = func(left int) {
		w := replay()
		print := w.print()
		if seen[print] > left {
			return
		}
		first := seen[print] == 0
		seen[print] = left + 1
		moves := w.moves()
		if first {
			states++
			w.settle()
		}
		if left == 0 {
			return
		}
		for _, m := range moves {
			path = append(path, m)
			walk(left - 1)
			path = path[:len(path)-1]
		}
	}
	walk(depth)
	t.Logf("%d states to depth %d", states, depth)
	if states < 300 {
		t.Errorf("only %d states: the walk is cut short", states)
	}
}

// failing prints the path that led to a failure.
type failing struct {
	testing.TB
	path []string
}

func (f *failing) Fatalf(format string, args ...any) {
	f.TB.Helper()
	f.TB.Fatalf("after %s: %s", strings.Join(slices.Clone(f.path), " → "), fmt.Sprintf(format, args...))
}
