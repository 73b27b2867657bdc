package question

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestLastClaimLostPastTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.attach("a")
		time.Sleep(minute + ms)
		synctest.Wait()
		if got := s.summary(); got != "open" {
			t.Fatalf("held past the deadline: %s, want open", got)
		}
		s.release("a")
		if got := s.summary(); got != "unanswered" {
			t.Errorf("released: %s, want unanswered at once", got)
		}
		s.spent()
	})
}

func TestClaimStreamFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		broken := errors.New("socket broke")
		err := s.svc.AttachWait(t.Context(), s.a, "c1", "a", func(int64) error { return broken })
		if !errors.Is(err, broken) {
			t.Errorf("AttachWait error = %v, want %v", err, broken)
		}
		if s.w.Shown() {
			t.Error("Shown = true for a frame that never arrived")
		}
		time.Sleep(minute)
		synctest.Wait()
		if got := s.summary(); got != "unanswered" {
			t.Errorf("at the deadline: %s, want unanswered", got)
		}
	})
}

func TestClaimEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.attach("a")
		s.attach("b")
		if !s.w.Shown() {
			t.Error("Shown = false after a claim")
		}
		time.Sleep(time.Second)
		if got := s.w.Remaining(); got != minute-time.Second {
			t.Errorf("Remaining = %v, want 59s", got)
		}
		s.e.Left("a")
		synctest.Wait()
		if err, ended := s.ended["a"]; !ended || err != nil {
			t.Errorf("claim of a client whose delivery ended: %v, %v, want its stream to end", ended, err)
		}
		if _, ended := s.ended["b"]; ended {
			t.Error("another client's claim ended too")
		}
		s.e.answer("b", "phone", good)
		synctest.Wait()
		if err, ended := s.ended["b"]; !ended || err != nil {
			t.Errorf("claim after the outcome: %v, %v, want its stream to end", ended, err)
		}
	})
}

// What cannot be claimed gets no frame.
func TestAttachYieldsNoFrame(t *testing.T) {
	for _, tc := range []struct {
		name string
		do   func(*scene) (callID string)
	}{
		{"unknown", func(*scene) string { return "other" }},
		{"unkeyed", func(*scene) string { return "" }},
		{"answered", func(s *scene) string { s.e.answer("a", "", good); return "c1" }},
		{"aborted", func(s *scene) string { s.w.Abort(); return "c1" }},
		{"overdue", func(s *scene) string { time.Sleep(minute); return "c1" }},
		{"blocking", func(s *scene) string {
			if _, err := s.svc.Start(s.request(s.a), "c2", Blocking, s.rec.done); err != nil {
				s.t.Fatal(err)
			}
			return "c2"
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScene(t)
				id := tc.do(s)
				err := s.svc.AttachWait(t.Context(), s.a, id, "a", func(int64) error {
					t.Error("a frame was sent, want none")
					return nil
				})
				if err != nil {
					t.Errorf("AttachWait error = %v, want the stream to end plainly", err)
				}
			})
		})
	}
}

// While an answer is being checked its client's claim holds the wait.
func TestClaimHoldsDuringTheCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.attach("a")
		during := func() { time.Sleep(time.Second) }
		s.mod.during.Store(&during)
		time.Sleep(minute - ms)
		if _, taken := s.e.answer("a", "", good); !taken {
			t.Error("the answer was not taken, want it to beat the deadline it began before")
		}
		synctest.Wait()
		if got := s.summary(); got != "answered by a" {
			t.Errorf("outcome: %s, want answered by a", got)
		}
	})
}
