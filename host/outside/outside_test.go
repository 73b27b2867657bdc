package outside

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"meanwhile/host/question"
	"meanwhile/host/session"
)

func TestAnsweredWhileHeld(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		done := make(chan Standing, 1)
		go func() { done <- r.mustAsk("", "", 0) }()
		synctest.Wait()
		r.event().answer(sqlite)
		st := <-done
		wantStatus(t, st, Answered)
		if st.Answers[0].Selected[0] != "SQLite" || st.MessageID == "" {
			t.Errorf("got %+v", st)
		}
		if got, want := r.types(), "turn/start step/start request/header tool/call tool/result step/end turn/end"; got != want {
			t.Errorf("log = %s, want %s", got, want)
		}
		again := r.await(me, st.CallID, time.Second)
		wantStatus(t, again, Answered)
	})
}

// A session that is deleted takes its agent away while the ask ends.
func TestDeletedWhileHeld(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		done := make(chan error, 1)
		go func() {
			_, err := r.svc.Ask(context.Background(), me, r.id, Asking{Questions: []byte(questionsJSON)}, time.Minute)
			done <- err
		}()
		synctest.Wait()
		var w *question.Wait
		r.live().Log().View(func(s *session.State) {
			for q := range s.Questions.AllActive {
				w, _ = r.q.Lookup(r.id, q.CallID)
			}
		})
		if w == nil {
			t.Fatal("no wait")
		}
		if err := r.reg.Remove(context.Background(), r.live()); err != nil {
			t.Fatal(err)
		}
		w.Abort()
		var told *question.Error
		if err := <-done; !errors.As(err, &told) || told.Code != question.CodeAborted {
			t.Errorf("got %v, want %s", err, question.CodeAborted)
		}
	})
}

func TestHoldEndsBeforeTheWindow(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		st := r.mustAsk("", "120", 50*time.Second)
		wantStatus(t, st, Pending)
		if st.RemainingMs != 70_000 || st.Shown == nil || *st.Shown {
			t.Errorf("got %+v, want 70 s left, shown to nobody", st)
		}
		if got := r.types(); strings.Contains(got, "tool/result") {
			t.Errorf("the end of a hold was recorded: %s", got)
		}
		st = r.await(me, st.CallID, 69*time.Second)
		wantStatus(t, st, Pending)
		if st.RemainingMs != 1000 {
			t.Errorf("remaining %d, want 1000", st.RemainingMs)
		}
		st = r.await(me, st.CallID, time.Minute)
		wantStatus(t, st, Pending)
		if st.RemainingMs != 0 {
			t.Errorf("remaining %d after the window, want 0", st.RemainingMs)
		}
	})
}

func TestDefaultHoldIsShorterThanEveryClientsLimit(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		start := time.Now()
		wantStatus(t, r.mustAsk("", "-1", 0), Waiting)
		if got := time.Since(start); got != HoldDefault {
			t.Errorf("held %v, want %v", got, HoldDefault)
		}
	})
}

// One tick either side of the deadline, held and not: exactly one of result and
// reply, and the answer arrives.
func TestAnswerAtTheDeadline(t *testing.T) {
	for _, held := range []bool{true, false} {
		for _, at := range []time.Duration{9999 * time.Millisecond, 10*time.Second - 1, 10 * time.Second, 10*time.Second + 1, 11 * time.Second} {
			t.Run(fmt.Sprint(held, at), func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					hold := time.Minute
					if !held {
						hold = time.Second
					}
					first := make(chan Standing, 1)
					go func() { first <- r.mustAsk("q", "10", hold) }()
					time.Sleep(at)
					synctest.Wait()
					inTime := r.event().answer(sqlite)
					synctest.Wait()
					var callID string
					r.svc.mu.Lock()
					for _, k := range r.svc.rooms[r.id].d.asks {
						callID = k.callID
					}
					r.svc.mu.Unlock()
					if !inTime {
						r.late(callID, "s1")
					}
					// An await holds only for what has not come.
					st := r.await(Party{TokenID: "tok", Holder: "h2"}, callID, time.Minute)
					wantStatus(t, st, Answered)
					types := r.types()
					splices := strings.Count(types, "agent/inbox/spliced")
					if results := strings.Count(types, "tool/result"); results != 1 {
						t.Errorf("%d results: %s", results, types)
					}
					if wantSplice := !held || !inTime; (splices == 1) != wantSplice {
						t.Errorf("held %v, in time %v: %d replies queued: %s", held, inTime, splices, types)
					}
				})
			})
		}
	}
}

func TestAnswerInTheWindowWithoutAHoldIsOneBatch(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		st := r.mustAsk("", "120", time.Second)
		before := len(r.mem.Batches())
		r.event().answer(sqlite)
		synctest.Wait()
		if got := len(r.mem.Batches()) - before; got != 1 {
			t.Errorf("recorded in %d batches, want 1", got)
		}
		if got := r.types(); !strings.HasSuffix(got, "tool/result step/end turn/end agent/inbox/spliced") {
			t.Errorf("log = %s", got)
		}
		wantStatus(t, r.await(me, st.CallID, time.Second), Answered)
	})
}

func TestSameRequestIsTheSameAsk(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var wg sync.WaitGroup
		ids := make([]string, 8)
		for i := range ids {
			wg.Go(func() { ids[i] = r.mustAsk("r1", "120", time.Second).CallID })
		}
		wg.Wait()
		for _, id := range ids {
			if id != ids[0] {
				t.Fatalf("one request id made %v", ids)
			}
		}
		if n := len(r.gate.events); n != 1 {
			t.Errorf("%d cards for one request", n)
		}
		_, err := r.svc.Ask(context.Background(), me, r.id, Asking{RequestID: "r1", Questions: json.RawMessage(`[{"id":"x","question":"Other?"}]`)}, 0)
		if !errors.Is(err, &question.Error{Code: question.CodeRequestConflict}) {
			t.Errorf("other questions under the same id: %v", err)
		}
		r.crash()
		st, err := r.ask(context.Background(), me, "r1", "120", time.Second)
		if err != nil || st.CallID != ids[0] || st.Status != Pending || st.RemainingMs != 0 || st.Shown != nil {
			t.Errorf("after a restart: %+v, %v, want the same ask, continued, shown unknown", st, err)
		}
		if n := len(r.gate.events); n != 0 {
			t.Errorf("a restart made %d cards", n)
		}
	})
}

func TestBlockingAskAfterAnUnknownOutcome(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		st := r.mustAsk("", "-1", time.Second)
		wantStatus(t, st, Waiting)
		r.crash()
		wantStatus(t, r.await(me, st.CallID, time.Second), Waiting)
		r.late(st.CallID, "s1")
		wantStatus(t, r.await(me, st.CallID, time.Second), Answered)
	})
}

func TestACutCallEndsNothingElse(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		ctx, cut := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() {
			_, err := r.ask(ctx, me, "r1", "120", time.Minute)
			done <- err
		}()
		synctest.Wait()
		cut()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Fatalf("cut call: %v", err)
		}
		st := r.mustAsk("r1", "120", time.Second)
		wantStatus(t, st, Pending)
		if len(r.gate.events) != 1 || st.RemainingMs == 0 {
			t.Errorf("the ask did not live on: %+v, %d cards", st, len(r.gate.events))
		}
	})
}

// A call cut while its ask is being recorded leaves a whole ask, or none.
func TestCutWhileStarting(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.live()
		r.mem.Hold()
		ctx, cut := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() {
			_, err := r.ask(ctx, me, "r1", "120", time.Minute)
			done <- err
		}()
		synctest.Wait()
		cut()
		<-done
		r.mem.Release()
		synctest.Wait()
		if n := len(r.gate.events); n != 1 {
			t.Fatalf("%d cards", n)
		}
		wantStatus(t, r.mustAsk("r1", "120", time.Second), Pending)
	})
}

func TestAnotherTokensSessionIsNone(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		thief := Party{TokenID: "thief"}
		st := r.mustAsk("", "120", time.Second)
		ctx := context.Background()
		_, e1 := r.ask(ctx, thief, "", "", 0)
		_, e2 := r.svc.Await(ctx, thief, r.id, st.CallID, 0)
		_, e3 := r.svc.Withdraw(ctx, thief, r.id, st.CallID)
		_, _, e4 := r.svc.Claim(ctx, thief, r.id, 0)
		_, e5 := r.svc.Admit(ctx, thief, r.id, []string{"x"})
		for i, err := range []error{e1, e2, e3, e4, e5} {
			if !errors.Is(err, session.ErrNoSession) {
				t.Errorf("call %d: %v, want %v", i, err, session.ErrNoSession)
			}
		}
		id, err := r.svc.Open(ctx, thief, Opening{Name: "ci", Key: "k"})
		if err != nil || id == r.id {
			t.Errorf("another token's key opened %s, %v", id, err)
		}
		id, err = r.svc.Open(ctx, me, Opening{Name: "ci", Key: "k"})
		if err != nil || id != r.id {
			t.Errorf("the same key opened %s, %v, want %s", id, err, r.id)
		}
	})
}

func TestBadInput(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		ctx := context.Background()
		for name, tc := range map[string]struct {
			q     Asking
			field string
		}{
			"no questions":    {Asking{}, "questions"},
			"timeout as text": {Asking{Questions: json.RawMessage(questionsJSON), Timeout: json.RawMessage(`"120"`)}, "timeout"},
			"timeout 0":       {Asking{Questions: json.RawMessage(questionsJSON), Timeout: json.RawMessage(`0`)}, "timeout"},
			"empty":           {Asking{Questions: json.RawMessage(`[]`)}, "questions"},
			"smuggled member": {Asking{Questions: json.RawMessage(questionsJSON + `,"timeout":1`), Timeout: json.RawMessage(`2`)}, "questions"},
		} {
			_, err := r.svc.Ask(ctx, me, r.id, tc.q, 0)
			var qe *question.Error
			if !errors.As(err, &qe) || qe.Field != tc.field {
				t.Errorf("%s: %v, want an error naming %s", name, err, tc.field)
			}
		}
		if got := r.types(); got != "" {
			t.Errorf("refused asks were recorded: %s", got)
		}
		if _, err := r.svc.Await(ctx, me, r.id, "nope", 0); !strings.Contains(fmt.Sprint(err), CodeUnknownCall) {
			t.Errorf("await of nothing: %v", err)
		}
		for _, name := range []string{" \t", "a\nb", "a\x00", "a\u202eb", strings.Repeat("é", nameMax+1)} {
			if _, err := r.svc.Open(ctx, me, Opening{Name: name}); !strings.Contains(fmt.Sprint(err), "agent.name") {
				t.Errorf("name %q: got %v", name, err)
			}
		}
		if _, err := r.svc.Open(ctx, me, Opening{}); !strings.Contains(fmt.Sprint(err), "agent.name") {
			t.Errorf("open without a name: %v", err)
		}
	})
}
