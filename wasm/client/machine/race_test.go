package machine

import "testing"

const sqlite = `[{"id":"db","selected":["SQLite"]}]`

func TestOpenCardAnswersByWaterfall(t *testing.T) {
	r := newRig(t)
	r.open()
	want(t, r.card(key), "state=open", "channel=ready", "countdown.state=counting", "countdown.remainingMs=60000", "submit=true")
	r.act(key, "select", "q", 0, "o", 1)
	want(t, r.card(key), "countdown.state=editing", "edited=true", "questions.0.selected=[1]")
	r.act(key, "submit")
	if got := r.sentAnswers(); got != sqlite {
		t.Errorf("sent %s", got)
	}
	want(t, r.card(key), "busy=sent", "locked=true", "countdown.state=none")
	// Two clicks are one submit.
	if r.act(key, "submit"); len(r.did("respond")) > 0 {
		t.Error("a second click sent again")
	}
	// Neither the response nor the end of the claim says answered.
	r.result(r.callID("userQuestions/attachWait"), doc{})
	want(t, r.card(key), "busy=sent")
	r.settled("e1", "result", "", "me")
	want(t, r.card(key), "busy=sent")
	r.upsert(row("s", 5))
	want(t, r.card(key), "state=answered", "ended.reason=answered")
	if len(r.stored) != 0 {
		t.Errorf("the draft stays: %v", r.stored)
	}
	want(t, r.view(doc{"view": "cards"}), "cards.0.group=answered", "needs=0")
}

func TestExpiryKeepsTheCardAndTheText(t *testing.T) {
	r := newRig(t)
	r.open()
	r.sleep(58_000)
	r.tick(1999)
	if len(r.did("respond")) > 0 {
		t.Fatal("expired a tick early")
	}
	r.tick(1)
	if got := r.sentAnswers(); got != "ASK_TIMED_OUT" {
		t.Fatalf("at zero sent %q", got)
	}
	want(t, r.card(key), "state=open", "channel=none", "countdown.remainingMs=0")
	r.act(key, "custom", "q", 0, "text", "both")
	r.upsert(row("s", 5, active("c1", "continued")))
	want(t, r.card(key), "state=continued", "channel=rpc", "questions.0.custom=both", "submit=true", "hint=")
	r.act(key, "submit")
	call := r.did("call")[0]
	want(t, call, "method=userQuestions/answer", "params.submissionId=n0-1", "params.answer.answers.0.custom=both", "params.callId=c1")
	r.result(call["id"].(string), doc{"accepted": true, "messageId": "n0-1", "state": "queued"})
	want(t, r.card(key), "state=queued", "hint.code=in-inbox", "locked=true")
	r.upsert(withReply(row("s", 6, active("c1", "continued")), "n0-1", "c1", replyText("c1", words("both"))))
	want(t, r.card(key), "state=queued", "messageId=n0-1")
	r.upsert(row("s", 8))
	want(t, r.card(key), "busy=settling") // admitted, or discarded unseen and withdrawn?
	r.lookSettled(words("both"), "n0-1", "admitted")
	want(t, r.card(key), "state=answered", "ended.reason=answered")
	if len(r.stored) != 0 {
		t.Errorf("the draft stays: %v", r.stored)
	}
}

func TestTurnedContinuedDuringSubmit(t *testing.T) {
	r := newRig(t)
	r.open()
	r.act(key, "select", "q", 0, "o", 1)
	r.act(key, "submit")
	r.upsert(row("s", 5, active("c1", "continued")))
	want(t, r.card(key), "state=continued", "busy=", "hint.code=submit-again", "questions.0.selected=[1]", "submit=true")
	if len(r.did("call")) > 0 {
		t.Fatal("sent again without the person")
	}
	r.act(key, "submit")
	id := r.callID("userQuestions/answer")
	for _, tc := range []struct {
		name, hint string
		answer     func()
	}{
		{"not accepted", "not-accepted", func() { r.result(id, doc{"accepted": false}) }},
		{"discarded", "discarded", func() { r.result(id, doc{"accepted": true, "state": "discarded"}) }},
		{"queued already", "reply-queued", func() { r.fail(id, "REPLY_QUEUED") }},
		{"failed", "failed", func() { r.fail(id, "SESSION_DAMAGED") }},
	} {
		tc.answer()
		want(t, r.card(key), "busy=", "hint.code="+tc.hint, "questions.0.selected=[1]", "submit=true")
		// After any response a new press has a new id.
		old := id
		r.act(key, "submit")
		if id = r.callID("userQuestions/answer"); id == old {
			t.Fatalf("%s: the next press sent nothing", tc.name)
		}
	}
	want(t, r.did("call")[0], "params.submissionId=n0-5")
}

func TestLostResponseGoesAgainUnderItsID(t *testing.T) {
	r := newRig(t)
	r.boot()
	r.upsert(row("s", 5, active("c1", "continued")))
	r.act(key, "select", "q", 0, "o", 1)
	r.act(key, "submit")
	r.step(doc{"type": "down"})
	want(t, r.card(key), "busy=rpc", "channel=none")
	r.up("me2")
	var again []map[string]any
	for _, c := range r.did("call") {
		if c["method"] == "userQuestions/answer" {
			again = append(again, c)
		}
	}
	if len(again) != 1 {
		t.Fatalf("sent %d times", len(again))
	}
	want(t, again[0], "params.submissionId=n0-1")
	r.list(row("s", 7))
	r.synced()
	want(t, r.card(key), "busy=rpc") // absent, but the response decides whose it was
	r.result(r.callID("userQuestions/answer"), doc{"accepted": true, "messageId": "n0-1", "state": "admitted"})
	r.lookSettled(choice("SQLite"), "n0-1", "admitted")
	want(t, r.card(key), "state=answered", "ended.reason=answered")
}

func TestConnectionLostAfterSubmit(t *testing.T) {
	r := newRig(t)
	r.open()
	r.act(key, "select", "q", 0, "o", 1)
	r.act(key, "submit")
	r.step(doc{"type": "down"})
	want(t, r.card(key), "busy=resend")
	// The socket stays away: the same outcome goes by POST, a few times at most.
	posts := 0
	for range 40 {
		r.tick(1000)
		for _, c := range r.did("call") {
			posts++
			want(t, c, "method=remote/settle", "post=true", "params.eventId=e1", "params.result.answers.0.selected=[\"SQLite\"]")
			r.step(doc{"type": "error", "id": c["id"], "error": doc{"code": -32001}})
		}
	}
	if posts != 3 {
		t.Errorf("%d tries by POST", posts)
	}
	r.up("me2")
	r.list(row("s", 3, active("c1", "open")))
	r.deliver("d9", "e1", "c1", true)
	if got := r.sentAnswers(); got != sqlite {
		t.Fatalf("on the next delivery sent %s", got)
	}
	want(t, r.did("respond")[0], "id=d9")
	r.synced("e1")
	want(t, r.card(key), "busy=sent")
}

func TestTakenByPost(t *testing.T) {
	r := newRig(t)
	r.open()
	r.act(key, "custom", "q", 0, "text", "mine")
	r.act(key, "submit")
	r.step(doc{"type": "down"})
	r.sleep(4000)
	r.result(r.callID("remote/settle"), doc{"taken": true})
	want(t, r.card(key), "busy=sent")
	r.up("me2")
	r.list(row("s", 9))
	r.synced()
	want(t, r.card(key), "busy=settling") // taken, but was it recorded?
	r.lookSettled(words("mine"), "", "")
	want(t, r.card(key), "state=answered", "ended.reason=answered")
}

// The host told that our answer settled the ask and went before that was on
// disk; meanwhile the ask was withdrawn. The answer went nowhere, so the text stays.
func TestSettledButNeverRecorded(t *testing.T) {
	for _, by := range []string{"waterfall", "post"} {
		t.Run(by, func(t *testing.T) {
			r := newRig(t)
			r.open()
			r.act(key, "custom", "q", 0, "text", "mine")
			r.act(key, "submit")
			if by == "waterfall" {
				r.settled("e1", "result", "", "me")
				r.step(doc{"type": "down"})
			} else {
				r.step(doc{"type": "down"})
				r.sleep(4000)
				r.result(r.callID("remote/settle"), doc{"taken": true})
			}
			r.up("me2")
			r.list(row("s", 9))
			r.synced()
			want(t, r.card(key), "busy=settling")
			r.lookSettled(nil, "", "")
			want(t, r.card(key), "state=ended", "ended.reason=closed", "questions.0.custom=mine")
		})
	}
}

func TestExpiryNeverGoesTwice(t *testing.T) {
	r := newRig(t)
	r.open()
	r.sleep(60_000)
	r.step(doc{"type": "down"})
	r.up("me2")
	r.list(row("s", 3, active("c1", "open")))
	if r.deliver("d2", "e1", "c1", true); len(r.did("respond")) > 0 {
		t.Fatal("an expiry was sent again")
	}
	r.claim(5000)
	want(t, r.card(key), "countdown.state=counting", "countdown.remainingMs=5000", "channel=ready")
}

func TestRefused(t *testing.T) {
	r := newRig(t)
	r.boot()
	r.upsert(row("s", 3, doc{"callId": "c1", "questions": []doc{ask("db"), ask("cache")}, "state": "open"}))
	r.deliver("d1", "e1", "c1", true, ask("db"), ask("cache"))
	r.claim(60_000)
	claim := r.callID("userQuestions/attachWait")
	r.act(key, "select", "q", 0, "o", 1)
	r.act(key, "custom", "q", 1, "text", "none")
	r.act(key, "submit")
	r.step(doc{"type": "request", "id": "d2", "method": "user-questions/request", "params": doc{"eventId": "e1", "sessionId": "s",
		"request": doc{"questions": []doc{ask("db"), ask("cache")}, "wait": doc{"callId": "c1", "timed": true}},
		"refused": doc{"code": "BAD_ANSWER", "field": "answers[1].custom", "message": "no"}}})
	if len(r.did("respond")) > 0 || len(r.did("stream")) > 0 {
		t.Error("a refused answer went again, or the claim, which stays, was opened again")
	}
	if r.callID("userQuestions/attachWait") != claim {
		t.Error("another claim")
	}
	want(t, r.card(key), "busy=", "refused.q=1", "refused.part=custom", "page=1", "questions.1.custom=none",
		"countdown.state=editing", "submit=true")
	if !r.said("refused") {
		t.Error("the refusal was not told")
	}
	r.act(key, "custom", "q", 1, "text", "redis")
	want(t, r.card(key), "refused=")
	r.act(key, "submit")
	if got := r.sentAnswers(); got != `[{"id":"db","selected":["SQLite"]},{"custom":"redis","id":"cache","selected":[]}]` {
		t.Errorf("sent %s", got)
	}
}

func TestAnsweredByAnotherClient(t *testing.T) {
	for _, tc := range []struct {
		name  string
		draft func(*rig)
		kept  bool
	}{
		{"pristine", func(*rig) {}, false},
		{"typed", func(r *rig) { r.act(key, "custom", "q", 0, "text", "my words") }, true},
		{"submitted", func(r *rig) { r.act(key, "custom", "q", 0, "text", "my words"); r.act(key, "submit") }, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t)
			r.open()
			tc.draft(r)
			r.settled("e1", "result", "", "phone")
			want(t, r.card(key), "busy=settling", "locked=true")
			if !r.said("answered-elsewhere") {
				t.Error("nobody was told")
			}
			r.upsert(row("s", 5))
			if !tc.kept {
				want(t, r.card(key), "state=answered", "ended.reason=answered-elsewhere", "ended.byName=Phone")
				return
			}
			want(t, r.card(key), "state=ended", "ended.reason=answered-elsewhere", "ended.byName=Phone", "questions.0.custom=my words")
			if len(r.stored) != 1 {
				t.Fatalf("stored %v", r.stored)
			}
			// It is still there after a reload, until it is dismissed.
			again := newRig(t)
			again.stored = r.stored
			again.init(nil)
			again.up("me")
			again.list(row("s", 5))
			again.synced()
			want(t, again.card(key), "state=ended", "ended.reason=answered-elsewhere", "ended.byName=Phone", "questions.0.custom=my words")
			again.act(key, "dismiss")
			want(t, again.card(key), "state=")
			if len(again.stored) != 0 {
				t.Errorf("after dismiss stored %v", again.stored)
			}
		})
	}
}

func TestWithoutSettledTheRecordDecides(t *testing.T) {
	for _, tc := range []struct {
		name, recorded, state, reason string
	}{
		{"same batch is ours", "SQLite", "answered", "answered"},
		{"another is elsewhere", "Postgres", "ended", "answered-elsewhere"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t)
			r.open()
			r.act(key, "select", "q", 0, "o", 1)
			r.act(key, "submit")
			r.step(doc{"type": "down"})
			r.up("me2")
			r.list(row("s", 9))
			r.synced()
			want(t, r.card(key), "busy=settling") // looking it up
			r.item(r.callID("look"), doc{"header": doc{"version": 1, "id": "s", "createdAt": 1}, "seq": 9, "projections": doc{
				"userQuestions": doc{"active": []doc{}, "settled": []doc{{"callId": "c1", "answers": []doc{choice(tc.recorded)}}}},
				"inbox":         doc{"next-step": []doc{}, "next-turn": []doc{}}, "replies": []doc{}}})
			want(t, r.card(key), "state="+tc.state, "ended.reason="+tc.reason, "ended.answers.0.selected=[\""+tc.recorded+"\"]")
		})
	}
}

func TestWithdrawnKeepsText(t *testing.T) {
	r := newRig(t)
	r.open()
	r.act(key, "custom", "q", 0, "text", "hm")
	r.settled("e1", "cancelled", "ASK_WITHDRAWN", "")
	want(t, r.card(key), "state=open") // a cancel frame alone decides nothing
	r.upsert(row("s", 5))
	want(t, r.card(key), "state=ended", "ended.reason=withdrawn", "questions.0.custom=hm")
}

func TestDiscardedReplyComesBack(t *testing.T) {
	r := newRig(t)
	r.boot()
	r.upsert(row("s", 5, active("c1", "continued")))
	r.act(key, "select", "q", 0, "o", 0)
	r.act(key, "submit")
	r.result(r.callID("userQuestions/answer"), doc{"accepted": true, "messageId": "n0-1", "state": "queued"})
	// An older row says nothing yet.
	r.upsert(row("s", 5, active("c1", "continued")))
	want(t, r.card(key), "state=queued")
	r.upsert(withReply(row("s", 6, active("c1", "continued")), "n0-1", "c1", replyText("c1", choice("Postgres"))))
	r.act(key, "cancelReply")
	want(t, r.did("call")[0], "method=inbox/remove", "params.messageId=n0-1")
	r.upsert(row("s", 7, active("c1", "continued")))
	want(t, r.card(key), "state=continued", "hint.code=discarded", "questions.0.selected=[0]", "submit=true")
}

func TestAnotherReplyQueued(t *testing.T) {
	r := newRig(t)
	r.boot()
	r.upsert(row("s", 5, active("c1", "continued")))
	r.act(key, "custom", "q", 0, "text", "mine")
	r.upsert(withReply(row("s", 6, active("c1", "continued")), "other", "c1", replyText("c1", choice("Postgres"))))
	want(t, r.card(key), "state=queued", "locked=true")
	r.upsert(row("s", 8))
	r.item(r.callID("look"), doc{"header": doc{}, "seq": 8, "projections": doc{"userQuestions": doc{
		"active": []doc{}, "settled": []doc{{"callId": "c1", "answers": []doc{choice("Postgres")}}}}, "inbox": doc{}}})
	want(t, r.card(key), "state=ended", "ended.reason=answered-elsewhere", "questions.0.custom=mine")
}

// An answer inside the window that the host queued in place of a result: the
// ask is continued and the reply waits, in one batch.
func TestAnswerQueuedInPlaceOfResult(t *testing.T) {
	r := newRig(t)
	r.open()
	r.act(key, "select", "q", 0, "o", 1)
	r.act(key, "submit")
	r.upsert(withReply(row("s", 6, active("c1", "continued")), "m7", "c1", replyText("c1", choice("SQLite"))))
	want(t, r.card(key), "state=queued", "hint.code=in-inbox")
	r.settled("e1", "result", "", "me")
	r.upsert(row("s", 8))
	r.lookSettled(choice("SQLite"), "m7", "admitted")
	want(t, r.card(key), "state=answered")
}

func TestDiscardedUnseenAndWithdrawn(t *testing.T) {
	r := newRig(t)
	r.boot()
	r.upsert(row("s", 5, active("c1", "continued")))
	r.act(key, "custom", "q", 0, "text", "mine")
	r.act(key, "submit")
	r.result(r.callID("userQuestions/answer"), doc{"accepted": true, "messageId": "n0-1", "state": "queued"})
	r.upsert(withReply(row("s", 6, active("c1", "continued")), "n0-1", "c1", replyText("c1", words("mine"))))
	r.upsert(row("s", 9)) // one row for many changes
	r.lookSettled(nil, "n0-1", "discarded")
	want(t, r.card(key), "state=ended", "ended.reason=closed", "questions.0.custom=mine")
}

func TestContinuedDelegatesWhatReachesIt(t *testing.T) {
	r := newRig(t)
	r.boot()
	r.upsert(row("s", 5, active("c1", "continued")))
	r.deliver("d1", "e1", "c1", true)
	if got := r.sentAnswers(); got != "NEXT" {
		t.Errorf("sent %q", got)
	}
	if len(r.did("stream")) > 0 {
		t.Error("a claim for it")
	}
}

func TestDelegateReleasesTheClaimFirst(t *testing.T) {
	r := newRig(t)
	r.open()
	fx := r.act(key, "delegate")
	if len(fx) < 2 || fx[0]["do"] != "abort" || fx[1]["do"] != "respond" || r.sentAnswers() != "NEXT" {
		t.Errorf("effects %v", fx)
	}
	want(t, r.card(key), "channel=none")
}

func TestClaimOpensAgain(t *testing.T) {
	r := newRig(t)
	r.open()
	first := r.callID("userQuestions/attachWait")
	r.fail(first, "BUSY")
	r.tick(999)
	if len(r.did("stream")) > 0 {
		t.Fatal("at once")
	}
	r.tick(1)
	if len(r.did("stream")) != 1 {
		t.Fatal("not opened again")
	}
	r.act(key, "select", "q", 0, "o", 1)
	r.act(key, "submit")
	// Held until the host has accepted: the submit does not end it, its end after does not reopen it.
	if len(r.did("abort")) > 0 {
		t.Error("the submit released the claim")
	}
	r.result(r.callID("userQuestions/attachWait"), doc{})
	r.sleep(60_000)
	if len(r.m.calls) != 1 { // the list
		t.Errorf("calls %v", r.m.calls)
	}
}

func TestSubCall(t *testing.T) {
	for _, tc := range []struct {
		name, kind, code, by, state string
	}{
		{"answered", "result", "", "phone", "ended"},
		{"ours", "result", "", "me", "answered"},
		{"expired waits to be listed", "rejected", "ASK_TIMED_OUT", "phone", "open"},
		{"aborted", "cancelled", "ASK_ABORTED", "", "ended"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t)
			r.boot()
			r.deliver("d1", "e1", "c1", true)
			r.claim(60_000)
			r.act(key, "custom", "q", 0, "text", "x")
			if tc.by == "me" {
				r.act(key, "submit")
			}
			r.upsert(row("s", 4)) // not known yet is not no longer listed
			want(t, r.card(key), "questions.0.custom=x")
			r.settled("e1", tc.kind, tc.code, tc.by)
			want(t, r.card(key), "state="+tc.state, "questions.0.custom=x")
			if tc.state == "open" {
				r.upsert(row("s", 6, active("c1", "continued")))
				want(t, r.card(key), "state=continued", "submit=true")
			}
		})
	}
}

func TestUnkeyed(t *testing.T) {
	const key = "e:s:e1"
	start := func(t *testing.T) *rig {
		r := newRig(t)
		r.boot()
		r.deliver("d1", "e1", "", false)
		want(t, r.card(key), "channel=ready", "countdown.state=none", "blocking=true", "focus=true")
		return r
	}
	t.Run("hide does nothing, close cancels", func(t *testing.T) {
		r := start(t)
		r.act(key, "hide")
		want(t, r.card(key), "hidden=")
		r.act(key, "close")
		if got := r.sentAnswers(); got != "ASK_CANCELLED" {
			t.Errorf("sent %q", got)
		}
		r.settled("e1", "rejected", "ASK_CANCELLED", "me")
		want(t, r.card(key), "state=")
	})
	t.Run("cancel frame ends it, settled says who", func(t *testing.T) {
		r := start(t)
		r.act(key, "custom", "q", 0, "text", "x")
		r.step(doc{"type": "cancel", "id": "d1"})
		want(t, r.card(key), "state=ended", "ended.reason=closed")
		r.settled("e1", "result", "", "phone")
		want(t, r.card(key), "state=ended", "ended.reason=answered-elsewhere", "ended.byName=Phone", "questions.0.custom=x")
	})
	t.Run("answered", func(t *testing.T) {
		r := start(t)
		r.act(key, "select", "q", 0, "o", 1)
		r.act(key, "submit")
		r.settled("e1", "result", "", "me")
		want(t, r.card(key), "state=answered")
	})
	t.Run("gone while away", func(t *testing.T) {
		r := start(t)
		r.act(key, "custom", "q", 0, "text", "x")
		r.step(doc{"type": "down"})
		want(t, r.card(key), "state=open", "channel=none")
		r.up("me2")
		r.list(row("s", 3))
		want(t, r.card(key), "state=open")
		r.synced()
		want(t, r.card(key), "state=ended", "ended.reason=closed", "questions.0.custom=x")
	})
	t.Run("another request has another draft", func(t *testing.T) {
		r := start(t)
		r.act(key, "custom", "q", 0, "text", "x")
		r.deliver("d2", "e2", "", false)
		want(t, r.card("e:s:e2"), "questions.0.custom=", "edited=")
	})
}

func TestNotKnownYet(t *testing.T) {
	r := newRig(t)
	r.open()
	r.act(key, "custom", "q", 0, "text", "x")
	r.step(doc{"type": "down"})
	r.up("me2")
	want(t, r.card(key), "state=open")
	r.list(row("s", 3)) // without the ask: but the deliveries have not come yet
	want(t, r.card(key), "state=open")
	r.deliver("d2", "e1", "c1", true)
	r.synced("e1")
	want(t, r.card(key), "state=open", "channel=ready", "questions.0.custom=x")
	r.upsert(row("s", 4, active("c1", "open")))
	// A row that was cut says nothing of what it leaves out.
	r.settled("e1", "rejected", "ASK_TIMED_OUT", "phone")
	cut := row("s", 5)
	cut["partial"] = true
	r.upsert(cut)
	want(t, r.card(key), "state=open")
	r.item(r.callID("host/follow"), doc{"removed": []string{"s"}})
	want(t, r.card(key), "state=ended", "ended.reason=session-gone")
}

// The request of a session that the list has not come to is not one of a
// session that is gone.
func TestRequestBeforeItsSessionIsListed(t *testing.T) {
	r := newRig(t)
	r.init(nil)
	r.up("me")
	r.list()
	r.synced()
	r.deliver("d1", "e1", "c1", true)
	r.claim(2000)
	r.sleep(2000) // expired here: no delivery any more
	want(t, r.card(key), "state=open", "ended=")
	r.upsert(row("s", 3, active("c1", "continued")))
	want(t, r.card(key), "state=continued")
	r.item(r.callID("host/follow"), doc{"removed": []string{"s"}})
	want(t, r.card(key), "state=")
}

// An answer by another client, seen by a followed session before remote/settled.
func TestSettledComesAfterTheRecord(t *testing.T) {
	r := newRig(t)
	r.boot()
	var l eventLog
	l.start()
	l.header(true)
	l.ask("c1")
	r.history(&l)
	r.deliver("d1", "e1", "c1", true)
	r.act(key, "custom", "q", 0, "text", "mine")
	r.act(key, "submit")
	n := len(l.events)
	l.result("c1", `{"answers":[{"id":"db","selected":["SQLite"]}]}`, "")
	r.live(&l, n)
	want(t, r.card(key), "state=ended", "ended.reason=answered-elsewhere", "questions.0.custom=mine")
	r.settled("e1", "result", "", "phone")
	want(t, r.card(key), "state=ended", "ended.reason=answered-elsewhere", "ended.byName=Phone")
}
