package outside

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"meanwhile/shared/event"
)

func TestExpiryThenLateReply(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		start := time.Now()
		st := r.mustAsk("", "5", time.Minute)
		wantStatus(t, st, Pending)
		if st.RemainingMs != 0 || time.Since(start) != 5*time.Second {
			t.Errorf("got %+v", st)
		}
		got := make(chan Standing, 1)
		go func() { got <- r.await(me, st.CallID, time.Minute) }()
		synctest.Wait()
		r.late(st.CallID, "s1")
		late := <-got
		wantStatus(t, late, Answered)
		if late.MessageID != "s1" {
			t.Errorf("got %+v, want message s1", late)
		}
		if ids := r.admitted(); len(ids) != 0 {
			t.Errorf("admitted %v before it was acknowledged", ids)
		}
		if removed, err := r.live().RemoveQueued(context.Background(), "s1"); removed || err != nil {
			t.Errorf("a reply that was handed over could be cancelled: %v, %v", removed, err)
		}
		ids, err := r.svc.Admit(context.Background(), me, r.id, []string{"s1"})
		if err != nil || len(ids) != 1 {
			t.Fatalf("admit: %v, %v", ids, err)
		}
		again, err := r.svc.Admit(context.Background(), me, r.id, []string{"s1", "unknown"})
		if err != nil || len(again) != 1 {
			t.Errorf("admit again: %v, %v, want the one id", again, err)
		}
		if ids := r.admitted(); len(ids) != 1 {
			t.Errorf("admitted %v, want once", ids)
		}
		if types := r.types(); !strings.HasSuffix(types, "turn/start agent/inbox/spliced user/message turn/end") {
			t.Errorf("an admission is not a turn of its own: %s", types)
		}
		wantStatus(t, r.await(me, st.CallID, time.Second), Answered)
	})
}

func TestHandOverAndAcknowledgement(t *testing.T) {
	for _, tc := range []struct {
		name     string
		holder   string
		written  bool
		line     bool
		between  func(r *rig, hangUp func())
		admitted bool // by the holder's next call
		again    bool // handed to another
	}{
		{"the holder calls again", "h1", true, false, nil, true, false},
		{"its response was not written", "h1", false, false, nil, false, false},
		{"without a holder", "", true, false, nil, false, false},
		{"its connection ended", "h1", true, true, func(_ *rig, hangUp func()) { hangUp() }, false, true},
		{"a tick before the lease ends", "h1", false, false, func(*rig, func()) { time.Sleep(LeaseFor - 1) }, false, false},
		{"the lease ended", "h1", true, false, func(*rig, func()) { time.Sleep(LeaseFor) }, false, true},
		{"the host was killed", "h1", true, false, func(r *rig, _ func()) { r.crash() }, false, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				st := r.mustAsk("", "1", time.Minute)
				r.late(st.CallID, "s1")
				line := make(chan struct{})
				hangUp := sync.OnceFunc(func() { close(line); synctest.Wait() })
				var after []func()
				p := Party{TokenID: "tok", Holder: tc.holder, Written: func(f func()) { after = append(after, f) }}
				if tc.line {
					p.Line = line
				}
				msgs, lease, err := r.svc.Claim(context.Background(), p, r.id, 0)
				if err != nil || len(msgs) != 1 || msgs[0].ID != "s1" || lease != LeaseFor {
					t.Fatalf("claim: %v, %v, %v", msgs, lease, err)
				}
				if tc.written {
					for _, f := range after {
						f()
					}
				}
				if tc.between != nil {
					tc.between(r, hangUp)
				}
				if _, err := r.svc.Await(context.Background(), Party{TokenID: "tok", Holder: tc.holder}, r.id, st.CallID, 0); err != nil {
					t.Fatal(err)
				}
				if got := len(r.admitted()) == 1; got != tc.admitted {
					t.Errorf("admitted by calling again: %v, want %v", got, tc.admitted)
				}
				if tc.admitted {
					return
				}
				if tc.again { // that await took it for its holder; look as another after the lease
					time.Sleep(LeaseFor)
				}
				msgs, _, err = r.svc.Claim(context.Background(), Party{TokenID: "tok", Holder: "other"}, r.id, 0)
				if err != nil || (len(msgs) == 1) != tc.again {
					t.Errorf("handed to another: %v, %v, want %v", msgs, err, tc.again)
				}
				hangUp()
			})
		})
	}
}

func TestUnacknowledgedResultsAreHandedOverAgain(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		done := make(chan Standing, 1)
		go func() { done <- r.mustAsk("", "120", time.Minute) }()
		synctest.Wait()
		r.event().answer(sqlite)
		st := <-done
		other := Party{TokenID: "tok", Holder: "h2"}
		if msgs, _, _ := r.svc.Claim(context.Background(), other, r.id, 0); len(msgs) != 0 {
			t.Errorf("a leased result was handed to another: %v", msgs)
		}
		time.Sleep(LeaseFor)
		msgs, _, err := r.svc.Claim(context.Background(), other, r.id, 0)
		if err != nil || len(msgs) != 1 || msgs[0].ID != st.MessageID || !strings.Contains(string(msgs[0].Body), "SQLite") {
			t.Fatalf("claim: %s, %v", msgs, err)
		}
		r.crash()
		msgs, _, err = r.svc.Claim(context.Background(), me, r.id, 0)
		if err != nil || len(msgs) != 1 || msgs[0].ID != st.MessageID {
			t.Fatalf("claim after a restart: %s, %v", msgs, err)
		}
		before := r.types()
		if ids, err := r.svc.Admit(context.Background(), me, r.id, []string{st.MessageID}); err != nil || len(ids) != 1 {
			t.Fatalf("admit: %v, %v", ids, err)
		}
		if r.types() != before {
			t.Error("acknowledging a result wrote something")
		}
		if msgs, _, _ := r.svc.Claim(context.Background(), me, r.id, 0); len(msgs) != 0 {
			t.Errorf("handed over again after it was acknowledged: %v", msgs)
		}
	})
}

func TestAFullInboxStillDeliversTheAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		st := r.mustAsk("", "120", time.Second)
		a := r.live()
		for i := range 1000 {
			if err := a.Send(context.Background(), event.Message{ID: fmt.Sprint("m", i), Source: event.Source{Kind: event.SourceUser}, Text: "x"}); err != nil {
				t.Fatal(err)
			}
		}
		r.event().answer(sqlite)
		synctest.Wait()
		wantStatus(t, r.await(me, st.CallID, time.Second), Answered)
	})
}
