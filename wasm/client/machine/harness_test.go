package machine

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"meanwhile/shared/deadline/countdown"
)

// rig drives one machine as the page would and keeps what storage holds.
type rig struct {
	t      testing.TB
	m      *Machine
	now    countdown.Stamp
	fx     []map[string]any
	dirty  []any
	next   int64
	stored map[string]string
}

type doc = map[string]any

func newRig(t testing.TB) *rig {
	r := &rig{t: t, m: &Machine{}, now: countdown.Stamp{Wall: 1_700_000_000_000, Mono: 1000}, stored: map[string]string{}}
	return r
}

func (r *rig) init(extra doc) {
	in := doc{"type": "init", "tab": "T1", "nonce": "n0", "stored": r.stored}
	for k, v := range extra {
		in[k] = v
	}
	r.step(in)
}

// boot is init, up, an empty list of one session and synced.
func (r *rig) boot() {
	r.init(nil)
	r.up("me")
	r.list(row("s", -1))
	r.synced()
}

func (r *rig) step(in doc) []map[string]any {
	r.t.Helper()
	raw, err := json.Marshal(in)
	if err != nil {
		r.t.Fatal(err)
	}
	out, refused := r.m.Step(r.now, raw)
	if refused != nil {
		r.t.Fatalf("%s: %v", raw, refused)
	}
	var res struct {
		Effects []map[string]any
		Dirty   []any
		Next    int64
	}
	if err := json.Unmarshal(out, &res); err != nil {
		r.t.Fatalf("%s gave %s: %v", raw, out, err)
	}
	r.fx, r.dirty, r.next = res.Effects, res.Dirty, res.Next
	for _, f := range r.fx {
		switch f["do"] {
		case "store":
			r.stored[f["key"].(string)] = f["value"].(string)
		case "remove":
			delete(r.stored, f["key"].(string))
		}
	}
	return r.fx
}

func (r *rig) up(client string) {
	r.step(doc{"type": "up", "clientId": client, "scopes": []string{"read", "answer", "admin"}, "protocol": 1,
		"sha256": "a", "build": doc{"sha256": "a", "reload": true}})
}

func (r *rig) tick(ms int64) []map[string]any {
	r.t.Helper()
	r.now.Wall += ms
	r.now.Mono += ms
	return r.step(doc{"type": "tick"})
}

// sleep passes time in steps no longer than a driver's timer.
func (r *rig) sleep(ms int64) {
	for ms > 0 {
		d := min(ms, 2000)
		r.tick(d)
		ms -= d
	}
}

func (r *rig) act(key, act string, kv ...any) []map[string]any {
	r.t.Helper()
	in := doc{"type": "act", "key": key, "act": act}
	for i := 0; i+1 < len(kv); i += 2 {
		in[kv[i].(string)] = kv[i+1]
	}
	return r.step(in)
}

func ask(id string) doc {
	return doc{"id": id, "question": "Which " + id + "?", "options": []doc{{"label": "Postgres"}, {"label": "SQLite"}}}
}

func active(callID, state string) doc {
	return doc{"callId": callID, "questions": []doc{ask("db")}, "state": state}
}

func row(id string, seq int64, actives ...doc) doc {
	if actives == nil {
		actives = []doc{}
	}
	return doc{"id": id, "title": "Payments", "status": "running", "agent": doc{"kind": "external", "name": "build-bot"},
		"active": actives, "queued": []doc{}, "seq": seq, "createdAt": 1, "updatedAt": 10 + seq}
}

func withReply(d doc, id, callID, text string) doc {
	d["queued"] = []doc{{"id": id, "target": "next-step", "callId": callID, "text": text}}
	return d
}

func replyText(callID string, answers ...doc) string {
	b, _ := json.Marshal(doc{"kind": "answer_to_pending_question", "tool": "ask_user_question", "callId": callID,
		"questions": []doc{ask("db")}, "answers": answers})
	return string(b)
}

func choice(label string) doc { return doc{"id": "db", "selected": []string{label}} }

func words(text string) doc { return doc{"id": "db", "selected": []string{}, "custom": text} }

func (r *rig) list(rows ...doc) {
	r.t.Helper()
	r.item(r.callID("host/follow"), doc{"sessions": append([]doc{}, rows...)})
}

func (r *rig) upsert(rows ...doc) []map[string]any {
	r.t.Helper()
	return r.item(r.callID("host/follow"), doc{"upsert": rows})
}

func (r *rig) item(id string, v doc) []map[string]any {
	r.t.Helper()
	return r.step(doc{"type": "item", "id": id, "value": v})
}

func (r *rig) synced(events ...string) {
	if events == nil {
		events = []string{}
	}
	r.step(doc{"type": "notify", "method": "remote/synced", "params": doc{"eventIds": events}})
}

func (r *rig) settled(event, kind, code, by string) []map[string]any {
	p := doc{"eventId": event, "kind": kind}
	if code != "" {
		p["code"] = code
	}
	if by != "" {
		p["by"], p["byName"] = by, "Phone"
	}
	return r.step(doc{"type": "notify", "method": "remote/settled", "params": p})
}

func (r *rig) deliver(id, event, callID string, timed bool, qs ...doc) []map[string]any {
	if qs == nil {
		qs = []doc{ask("db")}
	}
	req := doc{"questions": qs}
	if callID != "" {
		wait := doc{"callId": callID}
		if timed {
			wait["timed"] = true
		}
		req["wait"] = wait
	}
	return r.step(doc{"type": "request", "id": id, "method": "user-questions/request",
		"params": doc{"eventId": event, "sessionId": "s", "request": req}})
}

// callID is the newest open call of ours with that method.
func (r *rig) callID(method string) string {
	r.t.Helper()
	kinds := map[string]callKind{"host/follow": callList, "session/follow": callFollow, "userQuestions/attachWait": callClaim,
		"userQuestions/answer": callAnswer, "remote/settle": callSettle, "look": callLook, "inbox/remove": callRemove}
	best := ""
	for id, c := range r.m.calls {
		if c.kind == kinds[method] && (len(id) > len(best) || len(id) == len(best) && id > best) {
			best = id
		}
	}
	if best == "" {
		r.t.Fatalf("no %s under way", method)
	}
	return best
}

func (r *rig) claim(ms int64) {
	r.t.Helper()
	r.item(r.callID("userQuestions/attachWait"), doc{"remainingMs": ms})
}

func (r *rig) result(id string, v doc) []map[string]any {
	r.t.Helper()
	return r.step(doc{"type": "result", "id": id, "result": v})
}

func (r *rig) fail(id, code string) []map[string]any {
	r.t.Helper()
	return r.step(doc{"type": "error", "id": id, "error": doc{"code": -32000, "message": code, "data": doc{"code": code}}})
}

func (r *rig) view(request doc) doc {
	r.t.Helper()
	raw, _ := json.Marshal(request)
	out, refused := r.m.View(r.now, raw)
	if refused != nil {
		r.t.Fatal(refused)
	}
	var v doc
	if err := json.Unmarshal(out, &v); err != nil {
		r.t.Fatalf("view %s: %v", out, err)
	}
	return v
}

func (r *rig) card(key string) doc {
	r.t.Helper()
	return r.view(doc{"view": "card", "key": key})
}

// did reports the effects of one kind in the last step, each as "a=b" of the
// named members.
func (r *rig) did(what string) []map[string]any {
	var found []map[string]any
	for _, f := range r.fx {
		if f["do"] == what {
			found = append(found, f)
		}
	}
	return found
}

func (r *rig) said(code string) bool {
	for _, f := range r.did("announce") {
		if f["code"] == code {
			return true
		}
	}
	return false
}

// want checks members of a document given as "path=value" with dots.
func want(t testing.TB, v doc, checks ...string) {
	t.Helper()
	for _, c := range checks {
		path, text, _ := strings.Cut(c, "=")
		var at any = v
		for _, name := range strings.Split(path, ".") {
			switch x := at.(type) {
			case map[string]any:
				at = x[name]
			case []any:
				i := 0
				fmt.Sscan(name, &i)
				if i < len(x) {
					at = x[i]
				} else {
					at = nil
				}
			default:
				at = nil
			}
		}
		got := ""
		if at != nil {
			b, _ := json.Marshal(at)
			got = strings.Trim(string(b), `"`)
		}
		if got != text {
			t.Errorf("%s = %s, want %s", path, got, text)
		}
	}
}

const key = "c:s:c1"

// open is a timed ask delivered and claimed with a minute left, and listed.
func (r *rig) open() {
	r.t.Helper()
	r.boot()
	r.upsert(row("s", 3, active("c1", "open")))
	r.deliver("d1", "e1", "c1", true)
	r.claim(60_000)
}

// sentAnswers is the answers of the last respond effect.
func (r *rig) sentAnswers() string {
	f := r.did("respond")
	if len(f) == 0 {
		return ""
	}
	last := f[len(f)-1]
	if res, ok := last["result"].(map[string]any); ok {
		b, _ := json.Marshal(res["answers"])
		return string(b)
	}
	return last["error"].(map[string]any)["data"].(map[string]any)["code"].(string)
}

// lookSettled answers a look with a recorded batch, and a reply's fate.
func (r *rig) lookSettled(answer doc, replyID, fate string) {
	r.t.Helper()
	replies := []doc{}
	if replyID != "" {
		replies = append(replies, doc{"id": replyID, "callId": "c1", "fate": fate})
	}
	settled := []doc{}
	if answer != nil {
		settled = append(settled, doc{"callId": "c1", "answers": []doc{answer}})
	}
	r.item(r.callID("look"), doc{"header": doc{}, "seq": 9, "projections": doc{
		"userQuestions": doc{"active": []doc{}, "settled": settled}, "inbox": doc{}, "replies": replies}})
}
