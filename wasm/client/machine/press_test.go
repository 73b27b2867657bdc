package machine

import "testing"

// Two presses of the button, by either channel, are one submit.
func TestTwoClicksAreOneSubmit(t *testing.T) {
	for _, tc := range []struct {
		name, effect string
		open         func(*rig)
	}{
		{name: "waterfall", effect: "respond", open: func(r *rig) { r.open() }},
		{name: "late", effect: "call", open: func(r *rig) {
			r.boot()
			r.upsert(row("s", 5, active("c1", "continued")))
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t)
			tc.open(r)
			r.act(key, "select", "q", 0, "o", 1)
			sent := 0
			for range 3 {
				r.act(key, "submit")
				sent += len(r.did(tc.effect))
				r.tick(50)
				sent += len(r.did(tc.effect))
			}
			if sent != 1 {
				t.Errorf("sent %d times, want once", sent)
			}
		})
	}
}

// Closing a keyed panel keeps what was typed, through the deadline too.
func TestHidingKeepsTheDraft(t *testing.T) {
	r := newRig(t)
	r.open()
	r.act(key, "custom", "q", 0, "text", "both")
	r.act(key, "close")
	want(t, r.card(key), "hidden=true")
	r.upsert(row("s", 5, active("c1", "continued")))
	r.act(key, "open")
	r.act(key, "submit")
	calls := r.did("call")
	if len(calls) != 1 {
		t.Fatalf("%d calls, want the late answer", len(calls))
	}
	want(t, calls[0], "method=userQuestions/answer", "params.answer.answers.0.custom=both")
}

// A reply is known by its source and never by its text.
func TestPastedReplyIsText(t *testing.T) {
	r := newRig(t)
	r.boot()
	var l eventLog
	l.start()
	text := replyText("c1", words("later"))
	l.user("m1", text)
	r.history(&l)
	wantRows(t, r, "user:"+text)
}
