package question

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"meanwhile/host/agent"
	"meanwhile/shared/projection"
)

func TestAskRefused(t *testing.T) {
	detail, plan := "the plan", func(approve string, detail *string) []projection.Question {
		return []projection.Question{{ID: "p", Question: "Go?", Detail: detail,
			Options: []projection.Option{{Label: "Approve"}, {Label: "Reject"}},
			Intent:  &projection.Intent{Kind: projection.IntentPlanReview, Approve: approve}}}
	}
	for _, tc := range []struct {
		name    string
		qs      []projection.Question
		timeout time.Duration
		callID  string
		fail    bool
		want    string
	}{
		{name: "no question", timeout: minute, callID: "c", want: CodeEmptyQuestions},
		{name: "no question, blocking", timeout: Blocking, want: CodeEmptyQuestions},
		{name: "timeout 0", qs: storeQuestions(t), timeout: 0, callID: "c", want: CodeBadTimeout},
		{name: "timeout below 0", qs: storeQuestions(t), timeout: -2, callID: "c", want: CodeBadTimeout},
		{name: "timeout over the limit", qs: storeQuestions(t), timeout: TimeoutMax + ms, callID: "c", want: CodeBadTimeout},
		{name: "timeout of a fraction", qs: storeQuestions(t), timeout: ms + 1, callID: "c", want: CodeBadTimeout},
		{name: "timed without a call id", qs: storeQuestions(t), timeout: minute, want: CodeBadQuestions},
		{name: "plan review with a timeout", qs: plan("Approve", &detail), timeout: minute, callID: "c", want: CodeBadIntent},
		{name: "plan review without detail", qs: plan("Approve", nil), timeout: Blocking, want: CodeBadIntent},
		{name: "plan review with a foreign label", qs: plan("Yes", &detail), timeout: Blocking, want: CodeBadIntent},
		{name: "over a limit", qs: []projection.Question{{ID: strings.Repeat("i", 65), Question: "?"}}, timeout: Blocking, want: CodeBadQuestions},
		{name: "the module fails", qs: storeQuestions(t), timeout: Blocking, fail: true, want: CodeValidatorFailed},
		{name: "the longest timeout", qs: storeQuestions(t), timeout: TimeoutMax, callID: "c"},
		{name: "the shortest", qs: storeQuestions(t), timeout: ms, callID: "c"},
		{name: "plan review", qs: plan("Approve", &detail), timeout: Blocking},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.mod.fail.Store(tc.fail)
				_, err := r.svc.Start(Request{Agent: r.agent(nil), Questions: tc.qs}, tc.callID, tc.timeout, func(Outcome) {})
				if got := code(err); got != tc.want {
					t.Errorf("Start error = %v, want %q", err, tc.want)
				}
				if sent := r.gw.count() == 1; sent != (tc.want == "") {
					t.Errorf("an event went out: %v", sent)
				}
			})
		})
	}
}

func TestAskTimedNeedsATimeout(t *testing.T) {
	r := newRig(t)
	if _, err := r.svc.AskTimed(t.Context(), r.request(r.agent(nil)), "c1", Blocking); code(err) != CodeBadTimeout {
		t.Errorf("AskTimed error = %v, want %s", err, CodeBadTimeout)
	}
}

// What clients are sent, and by which errors they may end it.
func TestEvent(t *testing.T) {
	const batch = `[{"id":"store","question":"Which store?","options":[{"label":"Postgres"},{"label":"SQLite"}]}]`
	for _, tc := range []struct {
		name    string
		callID  string
		timeout time.Duration
		wait    string
		codes   []string
	}{
		{"timed", "c1", minute, `,"wait":{"callId":"c1","timed":true}`, []string{CodeTimedOut}},
		{"keyed, blocking", "c1", Blocking, `,"wait":{"callId":"c1"}`, nil},
		{"unkeyed", "", Blocking, ``, []string{CodeCancelled}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t)
			a := r.agent(nil)
			if _, err := r.svc.Start(r.request(a), tc.callID, tc.timeout, func(Outcome) {}); err != nil {
				t.Fatal(err)
			}
			e := r.gw.last(t)
			want := fmt.Sprintf(`{"sessionId":%q,"request":{"questions":%s%s}}`, a.ID(), batch, tc.wait)
			if got := string(e.Params); got != want {
				t.Errorf("params = %s\nwant     %s", got, want)
			}
			if diff := cmp.Diff(tc.codes, e.Codes); diff != "" {
				t.Errorf("codes (-want +got):\n%s", diff)
			}
			if e.Name != EventName || e.Scope != "answer" {
				t.Errorf("event %q for scope %q", e.Name, e.Scope)
			}
		})
	}
}

func TestDuplicateWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		a, b := r.agent(nil), r.agent(nil)
		start := func(a *agent.Agent, id string, d time.Duration) error {
			_, err := r.svc.Start(r.request(a), id, d, func(Outcome) {})
			return err
		}
		if err := start(a, "c1", minute); err != nil {
			t.Fatal(err)
		}
		if err := start(a, "c1", minute); code(err) != CodeDuplicateWait {
			t.Errorf("same agent, same call: %v, want %s", err, CodeDuplicateWait)
		}
		if err := start(a, "c1", Blocking); code(err) != CodeDuplicateWait {
			t.Errorf("same, blocking: %v, want %s", err, CodeDuplicateWait)
		}
		if got := r.gw.count(); got != 1 {
			t.Errorf("%d events went out, want 1", got)
		}
		for name, err := range map[string]error{
			"another agent":   start(b, "c1", minute),
			"another call":    start(a, "c2", minute),
			"unkeyed":         start(a, "", Blocking),
			"another unkeyed": start(a, "", Blocking),
		} {
			if err != nil {
				t.Errorf("%s: %v, want it taken", name, err)
			}
		}
		time.Sleep(minute)
		synctest.Wait()
		if err := start(a, "c1", minute); err != nil {
			t.Errorf("again after the end: %v, want it taken", err)
		}
	})
}

func TestWhoMayAsk(t *testing.T) {
	ctx := t.Context()
	r := newRig(t)
	root := r.agent(nil)
	child := r.agent(root)
	ask := func(a *agent.Agent) string {
		w, err := r.svc.Start(r.request(a), "", Blocking, func(Outcome) {})
		if err == nil {
			w.Abort()
		}
		return code(err)
	}
	if got := ask(root); got != "" {
		t.Errorf("a root: %q, want it taken", got)
	}
	if got := ask(child); got != CodeDelegated {
		t.Errorf("an owned child: %q, want %s", got, CodeDelegated)
	}
	if err := r.reg.Remove(ctx, root); err != nil {
		t.Fatal(err)
	}
	if got := ask(child); got != CodeNotLive {
		t.Errorf("a closed child: %q, want %s", got, CodeNotLive)
	}
	again, err := r.reg.Resume(ctx, root.ID())
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(root); got != CodeNotLive {
		t.Errorf("a stale object with a live id: %q, want %s", got, CodeNotLive)
	}
	if got := ask(again); got != "" {
		t.Errorf("the resumed root: %q, want it taken", got)
	}
	former, err := r.reg.Resume(ctx, child.ID())
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(former); got != "" {
		t.Errorf("a former child resumed as a root: %q, want it taken", got)
	}
	if got := ask(nil); got != CodeNotLive {
		t.Errorf("nobody: %q, want %s", got, CodeNotLive)
	}
	if err := r.svc.AttachWait(ctx, root, "c1", "k", nil); code(err) != CodeNotLive {
		t.Errorf("AttachWait to a stale object: %v, want %s", err, CodeNotLive)
	}
	if _, err := r.svc.Answer(ctx, root, "c1", []byte(good), "m", ""); code(err) != CodeNotLive {
		t.Errorf("Answer to a stale object: %v, want %s", err, CodeNotLive)
	}
	if _, err := r.svc.Withdraw(ctx, root, "c1"); code(err) != CodeNotLive {
		t.Errorf("Withdraw by a stale object: %v, want %s", err, CodeNotLive)
	}
}

// The gateway may refuse an event, and reports it before Emit has returned.
func TestGatewayRefuses(t *testing.T) {
	r := newRig(t)
	r.gw.refuse = CodeTooMany
	_, err := r.svc.Ask(t.Context(), r.request(r.agent(nil)))
	if code(err) != CodeTooMany {
		t.Errorf("Ask error = %v, want %s", err, CodeTooMany)
	}
	if got := r.svc.Stats().Open; got != 0 {
		t.Errorf("%d asks open, want 0", got)
	}
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.attach("a")
		blocked := make(chan error, 1)
		go func() { _, err := s.svc.Ask(context.Background(), s.request(s.a)); blocked <- err }()
		synctest.Wait()
		s.svc.Close()
		s.svc.Close()
		if err := <-blocked; !errors.Is(err, ErrClosed) {
			t.Errorf("Ask error = %v, want %v", err, ErrClosed)
		}
		synctest.Wait()
		if _, ended := s.ended["a"]; !ended {
			t.Error("the claim's stream is still open")
		}
		s.e.answer("a", "", good)
		time.Sleep(2 * minute)
		if got := s.summary(); got != "open" {
			t.Errorf("a closed service settled an ask: %s", got)
		}
		if _, err := s.svc.Start(s.request(s.a), "c9", minute, s.rec.done); !errors.Is(err, ErrClosed) {
			t.Errorf("Start error = %v, want %v", err, ErrClosed)
		}
		if _, err := s.svc.Answer(t.Context(), s.a, "c1", []byte(good), "m1", ""); !errors.Is(err, ErrClosed) {
			t.Errorf("Answer error = %v, want %v", err, ErrClosed)
		}
	})
}

func TestStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		if _, err := s.svc.Start(s.request(s.a), "c2", minute, s.rec.done); err != nil {
			t.Fatal(err)
		}
		s.e.answer("a", "", good)
		if diff := cmp.Diff(Stats{Open: 1, Asked: 2, Answered: 1}, s.svc.Stats()); diff != "" {
			t.Errorf("stats (-want +got):\n%s", diff)
		}
		time.Sleep(minute)
		synctest.Wait()
		if diff := cmp.Diff(Stats{Asked: 2, Answered: 1, Continued: 1}, s.svc.Stats()); diff != "" {
			t.Errorf("stats (-want +got):\n%s", diff)
		}
	})
}

// Each code has a text of its own for the model and another for the person.
func TestEveryCodeHasItsTexts(t *testing.T) {
	codes := []string{CodeEmptyQuestions, CodeBadQuestions, CodeBadIntent, CodeBadTimeout, CodeDuplicateWait, CodeNotLive,
		CodeDelegated, CodeNoProvider, CodeAborted, CodeCancelled, CodeTimedOut, CodeWithdrawn, CodeBadAnswer,
		CodeReplyQueued, CodeRequestConflict, CodeValidatorFailed, CodeTooMany, CodeTooLarge}
	seen := map[string]string{}
	for _, c := range codes {
		for _, text := range []string{ForModel(c), ForPerson(c)} {
			if strings.Contains(text, c) {
				t.Errorf("%s has no text of its own: %q", c, text)
			}
			if other, dup := seen[text]; dup {
				t.Errorf("%s and %s share the text %q", c, other, text)
			}
			seen[text] = c
		}
	}
}

// Who measures hears of each outcome once, with the time the ask waited.
func TestSettledTellsHowLongItTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // one is told by a client's goroutine, one by a timer's
		var got []string
		r := newRig(t, func(o *Options) {
			o.Settled = func(o Outcome, took time.Duration) {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, fmt.Sprint(o.CallID, " ", o.Status, " ", took))
			}
		})
		a, rec := r.agent(nil), &recorder{}
		for _, id := range []string{"answered", "late"} {
			r.call(a, id, projection.ToolName, storeArguments)
			if _, err := r.svc.Start(r.request(a), id, minute, rec.done); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(20 * time.Second)
		r.gw.events[0].answer("a", "", good)
		time.Sleep(minute)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if diff := cmp.Diff([]string{"answered 0 20s", "late 1 1m0s"}, got); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
	})
}
