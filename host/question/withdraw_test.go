package question

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"meanwhile/host/agent"
	"meanwhile/shared/projection"
)

func TestWithdraw(t *testing.T) {
	for _, tc := range []struct {
		name string
		do   func(*rig, *agent.Agent)
		want bool
	}{
		{"continued", func(r *rig, a *agent.Agent) { r.continued(a, "c1") }, true},
		{"unknown", func(*rig, *agent.Agent) {}, false},
		{"settled", func(r *rig, a *agent.Agent) {
			r.call(a, "c1", projection.ToolName, storeArguments)
			r.result(a, "c1", good)
		}, false},
		{"a reply is queued", func(r *rig, a *agent.Agent) { r.continued(a, "c1"); r.answer(a, "c1", "m1") }, false},
		{"its reply was discarded", func(r *rig, a *agent.Agent) {
			r.continued(a, "c1")
			r.answer(a, "c1", "m1")
			r.discard(a, "m1")
		}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t)
			a := r.agent(nil)
			tc.do(r, a)
			r.call(a, "w1", projection.WithdrawName, `{"callId":"c1"}`)
			if got, err := r.svc.Withdraw(t.Context(), a, "c1"); got != tc.want || err != nil {
				t.Errorf("Withdraw = %v, %v, want %v", got, err, tc.want)
			}
		})
	}
}

func TestWithdrawMustBeRecordedFirst(t *testing.T) {
	r := newRig(t)
	a := r.agent(nil)
	r.continued(a, "c1")
	if got, err := r.svc.Withdraw(t.Context(), a, "c1"); got || !errors.Is(err, ErrUnrecorded) {
		t.Errorf("Withdraw = %v, %v, want %v", got, err, ErrUnrecorded)
	}
}

// From its recorded call to its result on disk a withdrawal holds the ask.
func TestAnswerWaitsForAWithdrawal(t *testing.T) {
	for _, tc := range []struct{ name, result, want string }{
		{"granted", `{"withdrawn":true}`, "false"},
		{"refused", `{"withdrawn":false}`, "queued"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				a := r.agent(nil)
				r.continued(a, "c1")
				r.call(a, "w1", projection.WithdrawName, `{"callId":"c1"}`)
				if ok, err := r.svc.Withdraw(t.Context(), a, "c1"); !ok || err != nil {
					t.Fatalf("Withdraw = %v, %v", ok, err)
				}
				got := make(chan string, 1)
				go func() { got <- r.answer(a, "c1", "m1") }()
				synctest.Wait()
				r.disk.Hold()
				recorded := make(chan struct{})
				go func() { r.result(a, "w1", tc.result); close(recorded) }()
				synctest.Wait()
				select {
				case g := <-got:
					t.Errorf("Answer = %s before the withdrawal's result was on disk", g)
				default:
				}
				r.disk.Release()
				<-recorded
				if g := <-got; g != tc.want {
					t.Errorf("Answer = %s, want %s", g, tc.want)
				}
			})
		})
	}
}

// An answer that waits for a withdrawal does not hold up a stopping host.
func TestCloseCutsAnAnswerThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		a := r.agent(nil)
		r.continued(a, "c1")
		r.call(a, "w1", projection.WithdrawName, `{"callId":"c1"}`)
		got := make(chan string, 1)
		go func() { got <- r.answer(a, "c1", "m1") }()
		synctest.Wait()
		r.svc.Close()
		if g := <-got; g != context.Canceled.Error() {
			t.Errorf("Answer = %s, want %v", g, context.Canceled)
		}
	})
}

// The deadline has ended the wait, but its result is not recorded yet.
func TestWithdrawJustAfterTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		a := r.agent(nil)
		r.call(a, "c1", projection.ToolName, storeArguments)
		r.call(a, "w1", projection.WithdrawName, `{"callId":"c1"}`)
		got := make(chan bool, 1)
		go func() {
			ok, err := r.svc.Withdraw(t.Context(), a, "c1")
			if err != nil {
				t.Error(err)
			}
			got <- ok
		}()
		synctest.Wait()
		time.Sleep(recordGrace / 2)
		r.result(a, "c1", `{"pending":true}`)
		if !<-got {
			t.Error("Withdraw = false, want it to take back the ask that became continued")
		}
	})
}

// An open ask that waits nowhere and is never recorded on stays as it is.
func TestWithdrawGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		a := r.agent(nil)
		r.call(a, "c1", projection.ToolName, storeArguments)
		start := time.Now()
		if ok, err := r.svc.Withdraw(t.Context(), a, "c1"); ok || err != nil {
			t.Errorf("Withdraw = %v, %v, want false", ok, err)
		}
		if got := time.Since(start); got != recordGrace {
			t.Errorf("gave up after %v, want %v", got, recordGrace)
		}
	})
}

// Withdrawal and answer of an open ask race at the gateway.
func TestWithdrawOfAnAskJustAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.call(s.a, "c1", projection.ToolName, storeArguments)
		s.call(s.a, "w1", projection.WithdrawName, `{"callId":"c1"}`)
		settled := s.e.Settled
		hold := make(chan struct{})
		s.e.Settled = func(x Settlement) { <-hold; settled(x) }
		go s.e.answer("a", "", good)
		synctest.Wait()
		got := make(chan bool, 1)
		go func() {
			ok, err := s.svc.Withdraw(context.Background(), s.a, "c1")
			if err != nil {
				t.Error(err)
			}
			got <- ok
		}()
		synctest.Wait()
		close(hold)
		synctest.Wait()
		s.result(s.a, "c1", good)
		if <-got {
			t.Error("Withdraw = true for an answered ask")
		}
		if got := s.summary(); got != "answered by a" {
			t.Errorf("outcome: %s, want answered by a", got)
		}
	})
}
