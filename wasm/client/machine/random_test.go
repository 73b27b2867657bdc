package machine

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// TestRandom drives two machines with the same random inputs: many sessions and
// asks, a host that is often wrong, a clock that jumps. Whatever comes, both give
// the same bytes, nothing panics, every view is a document, and an answer leaves
// only as the person submitted it.
func TestRandom(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rounds := 60
	if testing.Short() {
		rounds = 5
	}
	for i := range rounds {
		s := seed + uint64(i)
		t.Run(fmt.Sprint("seed ", s), func(t *testing.T) { randomRound(t, rand.New(rand.NewPCG(s, 1))) })
		if t.Failed() {
			return
		}
	}
}

func randomRound(t *testing.T, rnd *rand.Rand) {
	r := newRig(t)
	var twin Machine
	keyOf := map[string]string{} // delivery → card
	submitted := map[string]map[string]bool{}
	ids := []string{"m1"}
	requests := 0
	pick := func(list ...string) string { return list[rnd.IntN(len(list))] }
	step := func(in doc) {
		raw, _ := json.Marshal(in)
		want, refused := twin.Step(r.now, raw)
		if refused != nil {
			t.Fatalf("%s: %v", raw, refused)
		}
		act, _ := in["act"].(string)
		r.step(in)
		var again struct{ Effects []map[string]any }
		if err := json.Unmarshal(want, &again); err != nil {
			t.Fatal(err)
		}
		a, _ := json.Marshal(again.Effects)
		b, _ := json.Marshal(r.fx)
		if string(a) != string(b) {
			t.Fatalf("%s\none  %s\ntwin %s", raw, b, a)
		}
		for _, f := range r.fx {
			if id, ok := f["id"].(string); ok && f["do"] != "respond" {
				ids = append(ids, id)
			}
			key, batch := keyOf[fmt.Sprint(f["id"])], any(nil)
			switch {
			case f["do"] == "respond" && f["result"] != nil:
				batch = f["result"].(doc)["answers"]
			case f["method"] == "userQuestions/answer":
				p := f["params"].(doc)
				key, batch = fmt.Sprintf("c:%v:%v", p["sessionId"], p["callId"]), p["answer"].(doc)["answers"]
			default:
				continue
			}
			text, _ := json.Marshal(batch)
			if act == "submit" || act == "approve" || act == "changes" {
				if in["key"] != key {
					t.Fatalf("a press on %v sent an answer for %s", in["key"], key)
				}
				if submitted[key] == nil {
					submitted[key] = map[string]bool{}
				}
				submitted[key][string(text)] = true
			} else if !submitted[key][string(text)] {
				t.Fatalf("%s left for %s, which nobody submitted, on %s", text, key, raw)
			}
		}
	}
	step(doc{"type": "init", "tab": "T1", "nonce": "n0", "stored": doc{}})
	answersOf := func() []doc { return []doc{choice(pick("Postgres", "SQLite"))} }
	randomRow := func(sid string) doc {
		var actives, queued []doc
		for i := range 3 {
			c := fmt.Sprint("c", i)
			if rnd.IntN(2) == 0 {
				continue
			}
			actives = append(actives, active(c, pick("open", "continued")))
			if rnd.IntN(4) == 0 {
				queued = append(queued, doc{"id": pick("n0-1", "n0-2", "p"), "target": "next-step", "callId": c, "text": replyText(c, answersOf()...)})
			}
		}
		d := row(sid, int64(rnd.IntN(50)), actives...)
		d["queued"] = append([]doc{}, queued...)
		if rnd.IntN(10) == 0 {
			d["partial"] = true
		}
		return d
	}
	for range 250 {
		jump := int64(rnd.IntN(3000))
		r.now.Mono += jump
		r.now.Wall += jump
		if rnd.IntN(50) == 0 {
			r.now.Wall += int64(rnd.IntN(7_200_000)) - 3_600_000
		}
		sid, cid, ev := pick("s", "b"), pick("c0", "c1", "c2"), fmt.Sprint("e", rnd.IntN(6))
		card := pick("c:s:"+cid, "c:b:"+cid, "e:s:"+ev)
		id := ids[rnd.IntN(len(ids))]
		switch rnd.IntN(22) {
		case 0:
			step(doc{"type": "down"})
		case 1, 2:
			step(doc{"type": "up", "clientId": pick("me", "you"), "scopes": []string{"read", "answer"}, "protocol": 1})
		case 3, 4:
			step(doc{"type": "item", "id": id, "value": doc{"sessions": []doc{randomRow("s"), randomRow("b")}}})
		case 5, 6:
			step(doc{"type": "item", "id": id, "value": doc{"upsert": []doc{randomRow(sid)}, "removed": []string{pick("x", "b")}[:rnd.IntN(2)]}})
		case 7:
			step(doc{"type": "item", "id": id, "value": doc{"remainingMs": rnd.IntN(20_000)}})
		case 8, 9, 10:
			requests++
			d := fmt.Sprint("d", requests)
			req := doc{"questions": []doc{ask("db")}}
			keyOf[d] = "e:" + sid + ":" + ev
			if rnd.IntN(4) > 0 {
				req["wait"] = doc{"callId": cid, "timed": rnd.IntN(4) > 0}
				keyOf[d] = "c:" + sid + ":" + cid
			}
			p := doc{"eventId": ev, "sessionId": sid, "request": req}
			if rnd.IntN(6) == 0 {
				p["refused"] = doc{"code": "BAD_ANSWER", "field": "answers[0].selected", "message": "x"}
			}
			step(doc{"type": "request", "id": d, "method": "user-questions/request", "params": p})
		case 11:
			step(doc{"type": "notify", "method": "remote/settled", "params": doc{"eventId": ev, "kind": pick("result", "rejected", "cancelled"),
				"code": pick("ASK_TIMED_OUT", "ASK_CANCELLED", "ASK_WITHDRAWN", "ASK_ABORTED"), "by": pick("me", "phone"), "byName": "Phone"}})
		case 12:
			step(doc{"type": "notify", "method": "remote/synced", "params": doc{"eventIds": []string{ev, pick("e0", "e1")}}})
		case 13:
			step(doc{"type": "result", "id": id, "result": doc{"accepted": rnd.IntN(2) == 0, "messageId": "n0-1", "state": pick("queued", "discarded", "admitted"), "taken": rnd.IntN(2) == 0}})
		case 14:
			step(doc{"type": "error", "id": id, "error": doc{"data": doc{"code": pick("BAD_ANSWER", "REPLY_QUEUED", "NO_SESSION", "RESYNC"), "field": "answers[0].custom"}}})
		case 15:
			step(doc{"type": "cancel", "id": fmt.Sprint("d", rnd.IntN(requests+1))})
		case 16:
			step(doc{"type": "window", "visible": rnd.IntN(2) == 0})
		case 17:
			step(doc{"type": "item", "id": id, "value": doc{"header": doc{"version": 1, "id": sid, "createdAt": 1}, "seq": -1, "projections": doc{
				"userQuestions": doc{"active": []doc{active(cid, pick("open", "continued"))}, "settled": []doc{}}, "inbox": doc{}}}})
		case 18:
			step(doc{"type": pick("follow", "unfollow"), "sessionId": sid})
		default:
			in := doc{"type": "act", "key": card, "act": pick("focus", "blur", "select", "custom", "skip", "submit", "submit", "wait", "hide", "open", "close",
				"approve", "changes", "cancelReply", "dismiss", "seen", "delegate", "page"), "q": 0, "o": rnd.IntN(3), "text": pick("", "x", "words"), "on": rnd.IntN(2) == 0, "to": 0}
			step(in)
		}
		if rnd.IntN(10) == 0 {
			for _, v := range []doc{{"view": "cards"}, {"view": "sessions"}, {"view": "card", "key": card}, {"view": "transcript", "sessionId": sid}} {
				r.view(v)
			}
		}
		for _, c := range r.m.cards {
			if (c.Delivery != "") && c.Ended != nil {
				t.Fatalf("%s ended with a channel", c.Key)
			}
			if r.m.byKey[c.Key] != c {
				t.Fatalf("%s is listed under another's key", c.Key)
			}
		}
	}
}
