package machine

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// log is a session's events as the host would send them.
type eventLog struct {
	events []doc
}

func (l *eventLog) add(typ string, data doc) {
	l.events = append(l.events, doc{"seq": len(l.events), "time": 1000 + len(l.events), "type": typ, "data": data})
}

func (l *eventLog) header(timed bool) {
	props := doc{"questions": doc{}}
	if timed {
		props["timeout"] = doc{}
	}
	l.add("request/header", doc{"reason": "initial", "header": doc{"config": doc{"provider": "p", "model": "m"},
		"tools": []doc{{"name": "ask_user_question", "description": "", "parameters": doc{"properties": props}}}}})
}

func (l *eventLog) call(id, name string, args any) {
	text, ok := args.(string)
	if !ok {
		b, _ := json.Marshal(args)
		text = string(b)
	}
	l.add("tool/call", doc{"turn": 1, "step": 1, "callId": id, "name": name, "arguments": text})
}

func (l *eventLog) ask(id string) {
	l.call(id, "ask_user_question", doc{"questions": []doc{ask("db")}})
}

func (l *eventLog) result(id, text, code string) {
	d := doc{"turn": 1, "step": 1, "message": doc{"id": "r-" + id, "role": "tool", "toolCallId": id, "isError": code != "",
		"content": []doc{{"type": "text", "text": text}}}}
	if code != "" {
		d["error"] = doc{"name": "UserQuestionError", "code": code}
	}
	l.add("tool/result", d)
}

func (l *eventLog) user(id, text string) {
	l.add("user/message", doc{"id": id, "source": doc{"kind": "user"}, "content": []doc{{"type": "text", "text": text}}})
}

func reply(id, callID, text string) doc {
	return doc{"id": id, "source": doc{"kind": "user-question-reply", "callId": callID, "outcome": "answered", "by": "Phone"},
		"content": []doc{{"type": "text", "text": text}}}
}

func (l *eventLog) say(kind, text string) {
	l.add("assistant/message", doc{"turn": 1, "step": 1, "message": doc{"id": fmt.Sprint("a", len(l.events)), "content": []doc{{"type": kind, "text": text}}}})
}

func (l *eventLog) start() {
	l.add("turn/start", doc{"turn": 1})
	l.add("step/start", doc{"turn": 1, "step": 1})
}

func (l *eventLog) end(kind string) {
	l.add("step/end", doc{"turn": 1, "step": 1})
	l.add("turn/end", doc{"turn": 1, "reason": doc{"kind": kind}})
}

// send gives the machine events from..end: first history, then live batches.
func (r *rig) history(l *eventLog) {
	r.t.Helper()
	r.step(doc{"type": "follow", "sessionId": "s"})
	id := r.callID("session/follow")
	r.item(id, doc{"header": doc{"version": 1, "id": "s", "createdAt": 1}, "seq": len(l.events) - 1, "projections": doc{}})
	r.item(id, doc{"events": l.events, "seq": len(l.events) - 1})
}

func (r *rig) live(l *eventLog, from int) {
	r.t.Helper()
	r.item(r.callID("session/follow"), doc{"events": l.events[from:], "changes": doc{}, "seq": len(l.events) - 1})
}

// rows are the transcript's rows as short texts.
func (r *rig) rows() string {
	v := r.view(doc{"view": "transcript", "sessionId": "s"})
	var out []string
	for _, t := range v["turns"].([]any) {
		for _, n := range t.(doc)["rows"].([]any) {
			n := n.(doc)
			text := fmt.Sprint(n["k"])
			switch n["k"] {
			case "turn", "group":
				text += fmt.Sprint("(", n["open"], ")")
			case "user", "text", "preview", "reasoning":
				text += ":" + fmt.Sprint(n["text"])
			case "tool":
				text += ":" + fmt.Sprint(n["name"], " ", n["state"])
			case "ask":
				acts, _ := json.Marshal(n["actions"])
				text += fmt.Sprintf(":%v %v/%v %s", n["ask"], n["n"], n["of"], acts)
			case "reply":
				p, _ := json.Marshal(n["pairs"])
				if n["raw"] != nil {
					p = []byte(fmt.Sprint("raw ", n["raw"]))
				}
				text += ":" + string(p)
			}
			out = append(out, text)
		}
	}
	return strings.Join(out, "\n")
}

func wantRows(t *testing.T, r *rig, want ...string) {
	t.Helper()
	if got := r.rows(); got != strings.Join(want, "\n") {
		t.Errorf("rows\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

func TestAskRowThroughItsLife(t *testing.T) {
	r := newRig(t)
	r.boot()
	var l eventLog
	l.start()
	l.header(true)
	l.user("u1", "build it")
	l.say("reasoning", "hm")
	l.ask("c1")
	r.history(&l)
	ask := func(s string) []string {
		return []string{"user:build it", "turn(true)", "group(true)", "reasoning:hm", s}
	}
	wantRows(t, r, ask(`ask:waiting 0/1 ["open"]`)...)
	want(t, r.card(key), "state=open", "channel=none")
	n := len(l.events)
	l.result("c1", `{"pending":true,"callId":"c1","message":"x"}`, "")
	r.live(&l, n)
	wantRows(t, r, ask(`ask:pending 0/1 ["answer"]`)...)
	n = len(l.events)
	l.add("agent/inbox/spliced", doc{"target": "next-step", "start": 0, "inserted": []doc{reply("m1", "c1", replyText("c1", choice("SQLite")))}})
	r.live(&l, n)
	wantRows(t, r, ask(`ask:queued 0/1 ["view","cancel"]`)...)
	want(t, r.card(key), "state=queued", "messageId=m1")
	want(t, r.view(doc{"view": "record", "sessionId": "s", "callId": "c1"}), "state=queued", "questions.0.selected=[1]")
	n = len(l.events)
	l.add("agent/inbox/spliced", doc{"target": "next-step", "start": 0, "removedCount": 1, "inserted": []doc{}})
	l.add("user/message", reply("m1", "c1", replyText("c1", choice("SQLite"))))
	l.user("u2", `{"kind":"answer_to_pending_question"}`) // the same JSON pasted is an ordinary message
	l.say("text", "done")
	r.live(&l, n)
	wantRows(t, r, append(ask(`ask:answered 1/1 ["view"]`), `reply:[{"question":"Which db?","selected":["SQLite"]}]`,
		`user:{"kind":"answer_to_pending_question"}`, "text:done")...)
	want(t, r.view(doc{"view": "record", "sessionId": "s", "callId": "c1"}), "state=answered", "questions.0.selected=[1]")
	want(t, r.card(key), "state=answered", "ended.reason=answered-elsewhere", "ended.byName=Phone")
	n = len(l.events)
	l.end("completed")
	r.live(&l, n)
	wantRows(t, r, "user:build it", "turn(false)", `user:{"kind":"answer_to_pending_question"}`, "text:done")
	r.step(doc{"type": "fold", "sessionId": "s", "key": "t0", "open": true})
	wantRows(t, r, "user:build it", "turn(true)", "group(false)", `user:{"kind":"answer_to_pending_question"}`, "text:done")
}

func TestAskRowStates(t *testing.T) {
	for _, tc := range []struct {
		name  string
		timed bool
		log   func(*eventLog)
		want  string
	}{
		{"in time", true, func(l *eventLog) { l.ask("c1"); l.result("c1", `{"answers":[{"id":"db","selected":["SQLite"]}]}`, "") }, `answered 1/1 ["view"]`},
		{"skipped", true, func(l *eventLog) { l.ask("c1"); l.result("c1", `{"answers":[{"id":"db","selected":[]}]}`, "") }, `answered 0/1 ["view"]`},
		{"legacy", false, func(l *eventLog) { l.ask("c1"); l.result("c1", `{"answers":[{"id":"db","selected":["SQLite"]}]}`, "") }, `answered 1/1 ["view"]`},
		{"legacy running", false, func(l *eventLog) { l.ask("c1") }, `waiting 0/1 []`},
		{"cancelled", false, func(l *eventLog) { l.ask("c1"); l.result("c1", `x`, "ASK_CANCELLED") }, `cancelled 0/1 []`},
		{"aborted", true, func(l *eventLog) { l.ask("c1"); l.result("c1", `x`, "ASK_ABORTED") }, `interrupted 0/1 []`},
		{"unknown, legacy", false, func(l *eventLog) { l.ask("c1"); l.result("c1", `x`, "TOOL_OUTCOME_UNKNOWN") }, `interrupted 0/1 []`},
		{"unknown, timed", true, func(l *eventLog) { l.ask("c1"); l.result("c1", `x`, "TOOL_OUTCOME_UNKNOWN") }, `pending 0/1 ["answer"]`},
		{"withdrawn while open", true, func(l *eventLog) { l.ask("c1"); l.result("c1", `x`, "ASK_WITHDRAWN") }, `withdrawn 0/1 []`},
		{"withdrawn later", true, func(l *eventLog) {
			l.ask("c1")
			l.result("c1", `{"pending":true}`, "")
			l.call("w", "withdraw_question", doc{"callId": "c1"})
			l.result("w", `{"withdrawn":true}`, "")
		}, `withdrawn 0/1 []`},
		{"nobody", true, func(l *eventLog) { l.ask("c1"); l.result("c1", `x`, "NO_PROVIDER") }, `closed 0/1 []`},
		{"agent's error", true, func(l *eventLog) { l.ask("c1"); l.result("c1", `x`, "BAD_TIMEOUT") }, `error 0/1 []`},
		{"pairs with nothing", true, func(l *eventLog) { l.ask("c1"); l.result("c1", `{"answers":[{"id":"x","selected":[]}]}`, "") }, `ambiguous 1/1 []`},
		{"id twice", false, func(l *eventLog) {
			l.ask("c1")
			l.result("c1", `{"answers":[{"id":"db","selected":[]}]}`, "")
			l.ask("c1")
		}, `ambiguous 0/1 []`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t)
			r.boot()
			var l eventLog
			l.start()
			l.header(tc.timed)
			tc.log(&l)
			r.history(&l)
			if got := r.rows(); !strings.Contains(got, "ask:"+tc.want) {
				t.Errorf("rows\n%s\nwant ask:%s", got, tc.want)
			}
		})
	}
}

func TestReplyOpensTheTurn(t *testing.T) {
	r := newRig(t)
	r.boot()
	var l eventLog
	l.start()
	l.add("user/message", reply("m1", "c1", replyText("c1", words("later"))))
	l.add("user/message", reply("m2", "c1", "not readable"))
	l.say("text", "thanks")
	r.history(&l)
	wantRows(t, r, "turn(true)", "group(true)", `reply:[{"custom":"later","question":"Which db?","selected":[]}]`, "reply:raw not readable", "text:thanks")
}

func TestLegacyRowOpensTheOneUnkeyedCard(t *testing.T) {
	r := newRig(t)
	r.boot()
	var l eventLog
	l.start()
	l.header(false)
	l.ask("c1")
	r.deliver("d1", "e1", "", false)
	r.history(&l)
	wantRows(t, r, "turn(true)", "group(true)", `ask:waiting 0/1 ["open"]`)
	r.deliver("d2", "e2", "", false) // now it could be either's
	wantRows(t, r, "turn(true)", "group(true)", `ask:waiting 0/1 []`)
}

func TestFollowResumes(t *testing.T) {
	r := newRig(t)
	r.boot()
	var l eventLog
	l.start()
	l.user("u1", "hi")
	r.history(&l)
	rev := r.view(doc{"view": "transcript", "sessionId": "s"})["rev"]
	r.item(r.callID("session/follow"), doc{"preview": doc{"turn": 1, "step": 1, "text": "wor"}})
	r.item(r.callID("session/follow"), doc{"preview": doc{"turn": 1, "step": 1, "text": "king"}})
	wantRows(t, r, "user:hi", "preview:working")
	r.step(doc{"type": "down"})
	want(t, r.view(doc{"view": "transcript", "sessionId": "s"}), "state=stale")
	r.up("me2")
	var follow doc
	for _, s := range r.did("stream") {
		if s["method"] == "session/follow" {
			follow = s
		}
	}
	want(t, follow, "params.after=2")
	id := follow["id"].(string)
	r.item(id, doc{"header": doc{"version": 1, "id": "s", "createdAt": 1}, "seq": 3, "projections": doc{}})
	l.say("text", "done")
	r.item(id, doc{"events": l.events[2:], "seq": 3}) // one was given before
	wantRows(t, r, "user:hi", "text:done")
	v := r.view(doc{"view": "transcript", "sessionId": "s", "since": rev})
	want(t, v, "reset=", "state=live", "total=1")
	if again := r.view(doc{"view": "transcript", "sessionId": "s", "since": v["rev"]}); len(again["turns"].([]any)) != 0 {
		t.Errorf("unchanged turns came again: %v", again)
	}
	// The host lost the end of the log.
	r.fail(id, "RESYNC")
	want(t, r.did("stream")[0], "method=session/follow", "params.after=")
	id = r.callID("session/follow")
	r.item(id, doc{"header": doc{"version": 1, "id": "s", "createdAt": 1}, "seq": 0, "projections": doc{}})
	r.item(id, doc{"events": l.events[:1], "seq": 0})
	want(t, r.view(doc{"view": "transcript", "sessionId": "s", "since": v["rev"]}), "reset=true", "total=1")
}

func TestDamagedFollowIsReadAnew(t *testing.T) {
	r := newRig(t)
	r.boot()
	var l eventLog
	l.start()
	r.history(&l)
	r.item(r.callID("session/follow"), doc{"events": []doc{{"seq": 7, "time": 1, "type": "turn/start", "data": doc{"turn": 2}}}, "seq": 7})
	want(t, r.view(doc{"view": "transcript", "sessionId": "s"}), "state=error", "total=0")
	r.tick(retryMin)
	want(t, r.did("stream")[0], "method=session/follow", "params.after=")
	r.fail(r.callID("session/follow"), "NO_SESSION")
	want(t, r.view(doc{"view": "transcript", "sessionId": "s"}), "state=gone")
	r.sleep(60_000)
	if len(r.did("stream")) > 0 {
		t.Error("a session that is gone is asked for again")
	}
}

// While a session is followed, its own log decides, with who replied.
func TestFollowedSessionDecides(t *testing.T) {
	r := newRig(t)
	r.boot()
	var l eventLog
	l.start()
	l.header(true)
	l.ask("c1")
	l.result("c1", `{"pending":true}`, "")
	r.history(&l)
	r.act(key, "custom", "q", 0, "text", "mine")
	r.upsert(row("s", 9)) // the list is ahead; the log will tell
	want(t, r.card(key), "state=continued")
	n := len(l.events)
	l.add("user/message", reply("m1", "c1", replyText("c1", choice("SQLite"))))
	r.live(&l, n)
	want(t, r.card(key), "state=ended", "ended.reason=answered-elsewhere", "ended.byName=Phone", "ended.answers.0.selected=[\"SQLite\"]",
		"questions.0.custom=mine")
}
