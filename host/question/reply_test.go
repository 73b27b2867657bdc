package question

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"meanwhile/host/agent"
	"meanwhile/host/agent/inbox"
	"meanwhile/host/session"
	"meanwhile/host/session/sessiontest"
	"meanwhile/shared/event"
	"meanwhile/shared/projection"
)

// answer sends the good answer and returns the result in a word: the fate of an
// accepted one, "false", or an error's code.
func (r *rig) answer(a *agent.Agent, callID, submissionID string) string {
	return r.answerWith(a, callID, submissionID, good)
}

func (r *rig) answerWith(a *agent.Agent, callID, submissionID, answer string) string {
	res, err := r.svc.Answer(context.Background(), a, callID, []byte(answer), submissionID, "phone")
	switch {
	case err != nil:
		return code(err)
	case !res.Accepted:
		return "false"
	case res.MessageID != submissionID:
		return "wrong message id " + res.MessageID
	}
	return string(res.State)
}

func (r *rig) discard(a *agent.Agent, messageID string) {
	r.t.Helper()
	if ok, err := a.RemoveQueued(context.Background(), messageID); !ok || err != nil {
		r.t.Fatalf("discard %s: %v, %v", messageID, ok, err)
	}
}

func (r *rig) admit(a *agent.Agent, messageID string) {
	r.t.Helper()
	if got, err := a.Passive().Admit(context.Background(), []string{messageID}); len(got) != 1 || err != nil {
		r.t.Fatalf("admit %s: %v, %v", messageID, got, err)
	}
}

func TestReplyMessage(t *testing.T) {
	r := newRig(t)
	a := r.agent(nil)
	r.continued(a, "c1")
	if got := r.answer(a, "c1", "m1"); got != "queued" {
		t.Fatalf("Answer = %s, want queued", got)
	}
	events := sessiontest.Events(t, a.Log())
	d, err := event.DecodeSpliced(events[len(events)-1].Data)
	if err != nil || d.Target != event.NextStep || len(d.Inserted) != 1 {
		t.Fatalf("last event = %s, %v, want one message spliced into %s", events[len(events)-1].Data, err, event.NextStep)
	}
	m := d.Inserted[0]
	want := event.Message{ID: "m1",
		Source: event.Source{Kind: "user-question-reply", CallID: "c1", Outcome: "answered", By: "phone"},
		Text: `{"kind":"answer_to_pending_question","tool":"ask_user_question","callId":"c1",` +
			`"questions":[{"id":"store","question":"Which store?","options":[{"label":"Postgres"},{"label":"SQLite"}]}],` +
			`"answers":[{"id":"store","selected":["SQLite"]}]}`}
	m.Raw = nil
	if diff := cmp.Diff(want, m); diff != "" {
		t.Errorf("reply (-want +got):\n%s", diff)
	}
	if got := r.svc.Stats().Replied; got != 1 {
		t.Errorf("Stats.Replied = %d, want 1", got)
	}
}

// The order of the checks, and each verdict. A row's do prepares the ask c1.
func TestAnswer(t *testing.T) {
	const bad = `{"answers":[]}`
	for _, tc := range []struct {
		name   string
		do     func(*rig, *agent.Agent)
		callID string
		id     string
		answer string
		want   string
	}{
		{name: "continued", do: func(r *rig, a *agent.Agent) { r.continued(a, "c1") }, want: "queued"},
		{name: "unknown", do: func(*rig, *agent.Agent) {}, want: "false"},
		{name: "unknown, and a bad answer", do: func(*rig, *agent.Agent) {}, answer: bad, want: "false"},
		{name: "open", do: func(r *rig, a *agent.Agent) { r.call(a, "c1", projection.ToolName, storeArguments) }, want: "false"},
		{name: "answered in time", do: func(r *rig, a *agent.Agent) {
			r.call(a, "c1", projection.ToolName, storeArguments)
			r.result(a, "c1", good)
		}, want: "false"},
		{name: "answered late", do: func(r *rig, a *agent.Agent) {
			r.continued(a, "c1")
			r.answer(a, "c1", "m0")
			r.admit(a, "m0")
		}, want: "false"},
		{name: "a reply is queued", do: func(r *rig, a *agent.Agent) { r.continued(a, "c1"); r.answer(a, "c1", "m0") }, want: CodeReplyQueued},
		{name: "a reply is queued, and a bad answer", do: func(r *rig, a *agent.Agent) { r.continued(a, "c1"); r.answer(a, "c1", "m0") },
			answer: bad, want: CodeReplyQueued},
		{name: "a reply to another ask is queued", do: func(r *rig, a *agent.Agent) {
			r.continued(a, "c0")
			r.continued(a, "c1")
			r.answer(a, "c0", "m0")
		}, want: "queued"},
		{name: "the queued reply was handed to the agent, not admitted", do: func(r *rig, a *agent.Agent) {
			r.continued(a, "c1")
			r.answer(a, "c1", "m0")
			if got, err := a.Passive().Claim(context.Background(), "h", 9, time.Minute); len(got) != 1 || err != nil {
				r.t.Fatal(got, err)
			}
			a.Passive().Leave("h")
		}, want: CodeReplyQueued},
		{name: "a discarded reply frees the ask", do: func(r *rig, a *agent.Agent) {
			r.continued(a, "c1")
			r.answer(a, "c1", "m0")
			r.discard(a, "m0")
		}, want: "queued"},
		{name: "bad", do: func(r *rig, a *agent.Agent) { r.continued(a, "c1") }, answer: bad, want: CodeBadAnswer},
		{name: "not JSON", do: func(r *rig, a *agent.Agent) { r.continued(a, "c1") }, answer: `{"answers"`, want: CodeBadAnswer},
		{name: "the module fails", do: func(r *rig, a *agent.Agent) { r.continued(a, "c1"); r.mod.fail.Store(true) }, want: CodeValidatorFailed},
		{name: "known, queued", do: func(r *rig, a *agent.Agent) { r.continued(a, "c1"); r.answer(a, "c1", "m1") }, want: "queued"},
		{name: "known, whatever it says now", do: func(r *rig, a *agent.Agent) { r.continued(a, "c1"); r.answer(a, "c1", "m1") },
			answer: bad, want: "queued"},
		{name: "known, admitted", do: func(r *rig, a *agent.Agent) {
			r.continued(a, "c1")
			r.answer(a, "c1", "m1")
			r.admit(a, "m1")
		}, want: "admitted"},
		{name: "known, discarded", do: func(r *rig, a *agent.Agent) {
			r.continued(a, "c1")
			r.answer(a, "c1", "m1")
			r.discard(a, "m1")
		}, want: "discarded"},
		{name: "known as a reply to another ask", do: func(r *rig, a *agent.Agent) {
			r.continued(a, "c0")
			r.continued(a, "c1")
			r.answer(a, "c0", "m1")
		}, want: "false"},
		{name: "the id of a message that waits", do: func(r *rig, a *agent.Agent) {
			r.continued(a, "c1")
			if err := a.Send(context.Background(), event.Message{ID: "m1", Source: event.Source{Kind: event.SourceUser}, Text: "hi"}); err != nil {
				r.t.Fatal(err)
			}
		}, want: "false"},
		{name: "no submission id", do: func(r *rig, a *agent.Agent) { r.continued(a, "c1") }, id: "-", want: CodeBadAnswer},
		{name: "a long submission id", do: func(r *rig, a *agent.Agent) { r.continued(a, "c1") }, id: strings.Repeat("m", inbox.IDMax+1), want: CodeBadAnswer},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t)
			a := r.agent(nil)
			tc.do(r, a)
			before := len(r.spliced(a))
			id, answer := "m1", good
			switch tc.id {
			case "":
			case "-":
				id = ""
			default:
				id = tc.id
			}
			if tc.answer != "" {
				answer = tc.answer
			}
			if got := r.answerWith(a, "c1", id, answer); got != tc.want {
				t.Errorf("Answer = %s, want %s", got, tc.want)
			}
			grew := len(r.spliced(a)) > before
			if accepted := tc.want == "queued" && !strings.HasPrefix(tc.name, "known"); grew != accepted {
				t.Errorf("a reply was recorded: %v, want %v", grew, accepted)
			}
		})
	}
}

func TestAnswerWaitsForTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		a := r.agent(nil)
		r.continued(a, "c1")
		r.disk.Hold()
		first, again := make(chan string, 1), make(chan string, 1)
		go func() { first <- r.answer(a, "c1", "m1") }()
		synctest.Wait()
		go func() { again <- r.answer(a, "c1", "m1") }()
		other := make(chan string, 1)
		go func() { other <- r.answer(a, "c1", "m2") }()
		synctest.Wait()
		select {
		case got := <-first:
			t.Errorf("Answer = %s before its reply was on disk", got)
		case got := <-again:
			t.Errorf("the same again = %s before the reply was on disk", got)
		case got := <-other:
			t.Errorf("another = %s: told of a reply that is not on disk", got)
		default:
		}
		r.disk.Release()
		if got := <-first; got != "queued" {
			t.Errorf("Answer = %s, want queued", got)
		}
		if got := <-again; got != "queued" {
			t.Errorf("the same again = %s, want queued", got)
		}
		if got := <-other; got != CodeReplyQueued {
			t.Errorf("another = %s, want %s", got, CodeReplyQueued)
		}
		if got := r.mod.answers.Load(); got != 1 {
			t.Errorf("%d answers checked, want 1: the second joins the first", got)
		}
		if got := r.spliced(a); !slices.Equal(got, []string{"m1"}) {
			t.Errorf("queued %v, want m1 once", got)
		}
	})
}

// A caller that leaves does not stop its answer; sent again, it is known.
func TestAnswerOutlivesItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		a := r.agent(nil)
		r.continued(a, "c1")
		r.disk.Hold()
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() { _, err := r.svc.Answer(ctx, a, "c1", []byte(good), "m1", ""); left <- err }()
		synctest.Wait()
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("Answer error = %v, want %v", err, context.Canceled)
		}
		r.disk.Release()
		synctest.Wait()
		if got := r.answer(a, "c1", "m1"); got != "queued" {
			t.Errorf("sent again: %s, want queued", got)
		}
		if got := r.spliced(a); !slices.Equal(got, []string{"m1"}) {
			t.Errorf("queued %v, want m1 once", got)
		}
	})
}

func TestCloseWaitsForAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		a := r.agent(nil)
		r.continued(a, "c1")
		r.disk.Hold()
		got := make(chan string, 1)
		go func() { got <- r.answer(a, "c1", "m1") }()
		synctest.Wait()
		closed := make(chan struct{})
		go func() { r.svc.Close(); close(closed) }()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("Close returned before the reply was on disk")
		default:
		}
		r.disk.Release()
		<-closed
		if got := <-got; got != "queued" {
			t.Errorf("Answer = %s, want queued", got)
		}
	})
}

func TestFailedSteerReleasesTheAsk(t *testing.T) {
	r := newRig(t)
	a := r.agent(nil)
	r.continued(a, "c1")
	for i := range inbox.QueueMax {
		m := event.Message{ID: fmt.Sprint("full", i), Source: event.Source{Kind: event.SourceUser}, Text: "x"}
		if err := a.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.svc.Answer(t.Context(), a, "c1", []byte(good), "m1", ""); !errors.Is(err, inbox.ErrFull) {
		t.Errorf("Answer error = %v, want %v", err, inbox.ErrFull)
	}
	r.discard(a, "full0")
	if got := r.answer(a, "c1", "m2"); got != "queued" {
		t.Errorf("Answer with room again = %s, want queued", got)
	}
}

// The ask changes while its answer is being checked: what counts is how it
// stands when the reply would be queued.
func TestAskMovesDuringTheCheck(t *testing.T) {
	for _, tc := range []struct {
		name string
		move func(*rig, *agent.Agent)
		want string
	}{
		{"another reply was queued", func(r *rig, a *agent.Agent) {
			m := ReplyMessage("c1", storeQuestions(r.t), nil, "m0", "")
			if err := a.Steer(context.Background(), m); err != nil {
				r.t.Error(err)
			}
		}, CodeReplyQueued},
		{"the ask was withdrawn", func(r *rig, a *agent.Agent) {
			r.call(a, "w1", projection.WithdrawName, `{"callId":"c1"}`)
			r.result(a, "w1", `{"withdrawn":true}`)
		}, "false"},
		{"other questions stand under its id", func(r *rig, a *agent.Agent) {
			sessiontest.Append(r.t, a.Log(), event.ToolCall{CallID: "c1", Name: projection.ToolName,
				Arguments: `{"questions":[{"id":"x","question":"Other?"}]}`}.Draft(),
				event.ToolResult{MessageID: "r", CallID: "c1", Text: `{"pending":true}`}.Draft())
		}, CodeBadAnswer},
		{"the agent closed", func(r *rig, a *agent.Agent) {
			if err := r.reg.Remove(context.Background(), a); err != nil {
				r.t.Error(err)
			}
		}, CodeNotLive},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t)
			a := r.agent(nil)
			r.continued(a, "c1")
			var once sync.Once
			during := func() { once.Do(func() { tc.move(r, a) }) }
			r.mod.during.Store(&during)
			if got := r.answer(a, "c1", "m1"); got != tc.want {
				t.Errorf("Answer = %s, want %s", got, tc.want)
			}
			if slices.Contains(r.spliced(a), "m1") {
				t.Error("the reply was queued")
			}
		})
	}
}

func TestAnswerToASessionThatIsGone(t *testing.T) {
	r := newRig(t)
	a := r.agent(nil)
	r.continued(a, "c1")
	if err := r.store.Delete(t.Context(), a.ID()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.svc.Answer(t.Context(), a, "c1", []byte(good), "m1", ""); !errors.Is(err, session.ErrNoSession) {
		t.Errorf("Answer error = %v, want %v", err, session.ErrNoSession)
	}
}

// After a restart everything is in the log: the reply is known, its ask taken.
func TestAnswerAfterRestart(t *testing.T) {
	r := newRig(t)
	a := r.agent(nil)
	r.continued(a, "c1")
	if got := r.answer(a, "c1", "m1"); got != "queued" {
		t.Fatal(got)
	}
	again := newRigOn(t, r.disk.Crash())
	b, err := again.reg.Resume(t.Context(), a.ID())
	if err != nil {
		t.Fatal(err)
	}
	if got := again.answer(b, "c1", "m1"); got != "queued" {
		t.Errorf("the same submission = %s, want queued", got)
	}
	if got := again.answer(b, "c1", "m2"); got != CodeReplyQueued {
		t.Errorf("another = %s, want %s", got, CodeReplyQueued)
	}
}
