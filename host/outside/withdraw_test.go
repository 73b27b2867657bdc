package outside

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"meanwhile/host/question"
)

func TestWithdrawAgainstAnswer(t *testing.T) {
	withdraw := func(r *rig, callID string) bool {
		r.t.Helper()
		done, err := r.svc.Withdraw(context.Background(), me, r.id, callID)
		if err != nil {
			r.t.Fatal(err)
		}
		return done
	}
	gone := func(t *testing.T, r *rig, callID string) {
		t.Helper()
		_, err := r.svc.Await(context.Background(), me, r.id, callID, time.Second)
		if !errors.Is(err, &question.Error{Code: question.CodeWithdrawn}) {
			t.Errorf("await of a withdrawn ask: %v", err)
		}
	}
	t.Run("open", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			st := r.mustAsk("", "120", time.Second)
			if !withdraw(r, st.CallID) || r.event().answer(sqlite) {
				t.Error("an answer won over the withdrawal before it")
			}
			synctest.Wait()
			gone(t, r, st.CallID)
			if withdraw(r, st.CallID) {
				t.Error("withdrawn twice")
			}
		})
	})
	t.Run("open, answered first", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			st := r.mustAsk("", "120", time.Second)
			r.event().answer(sqlite)
			if withdraw(r, st.CallID) {
				t.Error("withdrew an answered ask")
			}
			wantStatus(t, r.await(me, st.CallID, time.Second), Answered)
		})
	})
	t.Run("continued", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			st := r.mustAsk("", "1", time.Minute)
			if !withdraw(r, st.CallID) {
				t.Fatal("not withdrawn")
			}
			res, err := r.q.Answer(context.Background(), r.live(), st.CallID, json.RawMessage(sqlite), "s1", "Phone")
			if err != nil || res.Accepted {
				t.Errorf("answer after the withdrawal: %+v, %v", res, err)
			}
			gone(t, r, st.CallID)
			r.crash()
			gone(t, r, st.CallID)
		})
	})
	t.Run("continued, reply queued", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			st := r.mustAsk("", "1", time.Minute)
			r.late(st.CallID, "s1")
			if withdraw(r, st.CallID) {
				t.Error("withdrew an ask whose reply is queued")
			}
			wantStatus(t, r.await(me, st.CallID, time.Second), Answered)
		})
	})
	t.Run("both at once", func(t *testing.T) {
		for range 50 {
			bubble(t, func(t *testing.T, r *rig) {
				st := r.mustAsk("", "1", time.Minute)
				var withdrawn, accepted bool
				var wg sync.WaitGroup
				wg.Go(func() { withdrawn = withdraw(r, st.CallID) })
				wg.Go(func() {
					res, _ := r.q.Answer(context.Background(), r.live(), st.CallID, json.RawMessage(sqlite), "s1", "Phone")
					accepted = res.Accepted
				})
				wg.Wait()
				if withdrawn == accepted {
					t.Fatalf("withdrawn %v and accepted %v", withdrawn, accepted)
				}
			})
		}
	})
}
