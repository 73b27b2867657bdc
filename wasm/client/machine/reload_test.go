package machine

import "testing"

// A submit, then a reload before the list spoke: what was recorded says whether
// the draft is of use.
func TestReloadAfterSubmit(t *testing.T) {
	for _, tc := range []struct {
		name     string
		submit   bool
		recorded doc
		want     []string
		stored   int
	}{
		{"ours was recorded", true, choice("SQLite"), []string{"state=answered", "ended.reason=answered"}, 0},
		{"another was", true, choice("Postgres"), []string{"state=ended", "ended.reason=answered-elsewhere"}, 1},
		{"the same, but never sent", false, choice("SQLite"), []string{"state=ended", "ended.reason=answered-elsewhere"}, 1},
		{"nothing was", true, nil, []string{"state=ended", "ended.reason=closed"}, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := newRig(t)
			a.open()
			a.act(key, "select", "q", 0, "o", 1)
			if tc.submit {
				a.act(key, "submit")
			}
			r := newRig(t)
			r.stored = a.stored
			r.init(nil)
			r.up("me2")
			r.list(row("s", 9))
			r.synced()
			want(t, r.card(key), "state=ended", "ended.reason=closed")
			r.lookSettled(tc.recorded, "", "")
			want(t, r.card(key), tc.want...)
			if len(r.stored) != tc.stored {
				t.Errorf("stored %v", r.stored)
			}
		})
	}
	t.Run("listed after all", func(t *testing.T) {
		a := newRig(t)
		a.open()
		a.act(key, "select", "q", 0, "o", 1)
		r := newRig(t)
		r.stored = a.stored
		r.init(nil)
		r.up("me2")
		r.list(row("s", 2))
		r.synced()
		r.upsert(row("s", 9, active("c1", "continued")))
		want(t, r.card(key), "state=continued", "questions.0.selected=[1]", "questions.0.options.0.label=Postgres", "restored=true")
	})
}

// A reload does not send by itself what was sent before it.
func TestReloadDoesNotResend(t *testing.T) {
	a := newRig(t)
	a.open()
	a.act(key, "select", "q", 0, "o", 1)
	a.act(key, "submit")
	r := newRig(t)
	r.stored = a.stored
	r.init(nil)
	r.up("me2")
	r.list(row("s", 3, active("c1", "open")))
	if r.deliver("d7", "e1", "c1", true); len(r.did("respond")) > 0 {
		t.Error("sent without a press")
	}
	r.claim(30_000)
	want(t, r.card(key), "channel=ready", "busy=", "questions.0.selected=[1]", "countdown.state=editing", "submit=true")
}
