package question

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"meanwhile/host/agent"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const minute = time.Minute

// step is one thing that happens to a timed ask of one minute.
type step struct {
	after time.Duration // since the step before
	do    func(*scene)
}

// scene is one ask on a rig.
type scene struct {
	*rig
	a      *agent.Agent
	w      *Wait
	e      *fakeEvent
	rec    recorder
	frames []int64
	claims map[string]context.CancelFunc
	ended  map[string]error // claims whose stream ended, with what
}

func (s *scene) attach(client string) {
	ctx, cancel := context.WithCancel(context.Background())
	s.claims[client] = cancel
	go func() {
		err := s.svc.AttachWait(ctx, s.a, "c1", client, func(ms int64) error {
			s.rec.mu.Lock()
			defer s.rec.mu.Unlock()
			s.frames = append(s.frames, ms)
			return nil
		})
		s.rec.mu.Lock()
		defer s.rec.mu.Unlock()
		s.ended[client] = err
	}()
	synctest.Wait()
}

func (s *scene) release(client string) {
	s.claims[client]()
	synctest.Wait()
}

// summary is how the ask stands: the outcomes given, or "open".
func (s *scene) summary() string {
	out := []string{}
	for _, o := range s.rec.outcomes() {
		switch o.Status {
		case Answered:
			out = append(out, "answered by "+o.By)
		case Unanswered:
			out = append(out, "unanswered")
		default:
			out = append(out, o.Err.Code)
		}
	}
	if len(out) == 0 {
		return "open"
	}
	return strings.Join(out, " + ")
}

// One tick either side of every deadline. Each row is an ask of one minute; the
// steps happen, then the clock is a tick before the end, then at it.
func TestTimedAsk(t *testing.T) {
	attach := func(client string) func(*scene) { return func(s *scene) { s.attach(client) } }
	release := func(client string) func(*scene) { return func(s *scene) { s.release(client) } }
	sleep := func(d time.Duration) func(*scene) { return func(s *scene) { s.slept.Add(int64(d)) } }
	for _, tc := range []struct {
		name   string
		hold   time.Duration
		steps  []step
		end    time.Duration // from the last step; open a tick before it
		want   string
		frames []int64
	}{
		{name: "unclaimed", end: minute, want: "unanswered"},
		{name: "claim lost before the deadline",
			steps: []step{{10 * time.Second, attach("a")}, {20 * time.Second, release("a")}},
			end:   30 * time.Second, want: "unanswered", frames: []int64{50_000}},
		{name: "claim lost a tick before the deadline",
			steps: []step{{0, attach("a")}, {minute - ms, release("a")}},
			end:   ms, want: "unanswered", frames: []int64{60_000}},
		{name: "two claims, the first lost past the deadline: the second holds, to the bound",
			hold:  time.Hour,
			steps: []step{{0, attach("a")}, {time.Second, attach("b")}, {2 * minute, release("a")}},
			end:   time.Hour - minute - time.Second, want: "unanswered", frames: []int64{60_000, 59_000}},
		{name: "attached past the deadline beside a live claim",
			hold:  time.Hour,
			steps: []step{{0, attach("a")}, {minute, attach("b")}},
			end:   time.Hour, want: "unanswered", frames: []int64{60_000, 0}},
		{name: "a delivery that ends takes its claims",
			steps: []step{{0, attach("a")}, {minute / 2, func(s *scene) { s.e.Left("a") }}},
			end:   minute / 2, want: "unanswered", frames: []int64{60_000}},
		{name: "an error that settles nothing is the client leaving",
			steps: []step{{0, attach("a")}, {minute / 2, func(s *scene) { s.e.reject("a", "WHATEVER") }}},
			end:   minute / 2, want: "unanswered", frames: []int64{60_000}},
		{name: "nobody took it: out again, to the deadline",
			steps: []step{{time.Second, func(s *scene) { s.e.delegate("a") }}},
			end:   minute - time.Second, want: "unanswered"},
		{name: "asleep past the deadline: five seconds from the wake",
			steps: []step{{time.Second, sleep(time.Hour)}, {time.Second, func(*scene) {}}},
			end:   5 * time.Second, want: "unanswered"},
		{name: "asleep, not past the deadline",
			steps: []step{{time.Second, sleep(minute / 2)}, {time.Second, func(*scene) {}}},
			end:   28 * time.Second, want: "unanswered"},
		{name: "the wall clock steps: nothing moves",
			steps: []step{{time.Second, func(s *scene) { s.wall.Store(int64(time.Hour)) }}, {5 * time.Second, func(s *scene) { s.wall.Store(-int64(time.Hour)) }}},
			end:   minute - 6*time.Second, want: "unanswered"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScene(t, func(o *Options) { o.MaxHold = tc.hold })
				for i, st := range tc.steps {
					time.Sleep(st.after)
					synctest.Wait()
					st.do(s)
					synctest.Wait()
					if got := s.summary(); got != "open" {
						t.Fatalf("after step %d: %s, want open", i, got)
					}
				}
				time.Sleep(tc.end - ms)
				synctest.Wait()
				if got := s.summary(); got != "open" {
					t.Fatalf("a tick before the end: %s, want open", got)
				}
				time.Sleep(ms)
				synctest.Wait()
				if got := s.summary(); got != tc.want {
					t.Errorf("at the end: %s, want %s", got, tc.want)
				}
				if diff := cmp.Diff(tc.frames, s.frames); diff != "" {
					t.Errorf("frames (-want +got):\n%s", diff)
				}
				s.spent()
			})
		})
	}
}

func newScene(t *testing.T, change ...func(*Options)) *scene {
	t.Helper()
	s := &scene{rig: newRig(t, change...), claims: map[string]context.CancelFunc{}, ended: map[string]error{}}
	s.a = s.agent(nil)
	w, err := s.svc.Start(s.request(s.a), "c1", minute, s.rec.done)
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	s.w, s.e = w, s.gw.last(t)
	t.Cleanup(func() {
		for _, cancel := range s.claims {
			cancel()
		}
	})
	return s
}

// spent checks that a settled ask left nothing behind.
func (s *scene) spent() {
	s.t.Helper()
	s.svc.mu.Lock()
	defer s.svc.mu.Unlock()
	if n := len(s.svc.led.waits) + len(s.svc.led.claims) + s.svc.led.timed; n != 0 {
		s.t.Errorf("the ledger still holds %d waits and claims", n)
	}
	if s.w.timer != nil {
		s.t.Error("a timer is left")
	}
	if phase, _, _ := s.e.state(); phase == eventPending {
		s.t.Error("the event is still out")
	}
}

func TestOutcome(t *testing.T) {
	for _, tc := range []struct {
		name    string
		timeout time.Duration
		callID  string
		do      func(*scene)
		want    Outcome
	}{
		{"answered", minute, "c1", func(s *scene) { s.e.answer("k1", "phone", good) },
			Outcome{Status: Answered, CallID: "c1", Answers: Answers{{ID: "store", Selected: []string{"SQLite"}}}, By: "k1", ByName: "phone"}},
		{"skipped", minute, "c1", func(s *scene) { s.e.answer("k1", "", `{"answers":[{"id":"store","selected":[]}]}`) },
			Outcome{Status: Answered, CallID: "c1", Answers: Answers{{ID: "store", Selected: []string{}}}, By: "k1"}},
		{"a client's countdown", minute, "c1", func(s *scene) { s.e.reject("k1", CodeTimedOut) },
			Outcome{Status: Unanswered, CallID: "c1", By: "k1"}},
		{"closed without an answer", Blocking, "", func(s *scene) { s.e.reject("k1", CodeCancelled) },
			Outcome{Status: Failed, By: "k1", Err: modelError(CodeCancelled)}},
		{"a keyed card cannot be closed", minute, "c1", func(s *scene) { s.e.reject("k1", CodeCancelled); s.w.Abort() },
			Outcome{Status: Failed, CallID: "c1", Err: modelError(CodeAborted)}},
		{"nobody took a blocking ask", Blocking, "c1", func(s *scene) { s.e.delegate("k1") },
			Outcome{Status: Failed, CallID: "c1", Err: modelError(CodeNoProvider)}},
		{"withdrawn", minute, "c1", func(s *scene) {
			if ok, err := s.svc.Withdraw(s.t.Context(), s.a, "c1"); !ok || err != nil {
				s.t.Errorf("Withdraw = %v, %v, want true", ok, err)
			}
		}, Outcome{Status: Failed, CallID: "c1", Err: modelError(CodeWithdrawn)}},
		{"its session goes", minute, "c1", func(s *scene) { s.svc.AbortAll("another"); s.svc.AbortAll(s.a.ID()) },
			Outcome{Status: Failed, CallID: "c1", Err: modelError(CodeAborted)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &scene{rig: newRig(t)}
				s.a = s.agent(nil)
				var err error
				if s.w, err = s.svc.Start(s.request(s.a), tc.callID, tc.timeout, s.rec.done); err != nil {
					t.Fatal(err)
				}
				s.e = s.gw.last(t)
				tc.do(s)
				synctest.Wait()
				if diff := cmp.Diff([]Outcome{tc.want}, s.rec.outcomes()); diff != "" {
					t.Errorf("outcomes (-want +got):\n%s", diff)
				}
				s.spent()
			})
		})
	}
}

// Nobody takes a timed ask; later a client comes and answers the same event.
func TestNobodyThenSomebody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.e.delegate("a")
		s.e.delegate("b")
		if phase, emissions, _ := s.e.state(); phase != eventPending || emissions != 3 {
			t.Fatalf("event is in phase %d after %d emissions, want pending again after 3", phase, emissions)
		}
		s.attach("c")
		s.e.answer("c", "", good)
		synctest.Wait()
		if got := s.summary(); got != "answered by c" {
			t.Errorf("outcome: %s, want answered by c", got)
		}
		s.spent()
	})
}

// However an answer falls beside the deadline, there is one outcome, and it is
// the gateway's.
func TestAnswerAtTheDeadline(t *testing.T) {
	for _, when := range []string{"at it", "a tick before", "checked across it"} {
		t.Run(when, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScene(t)
				taken := false
				answer := func() { _, taken = s.e.answer("a", "", good) }
				switch when {
				case "at it":
					time.AfterFunc(minute, answer)
				case "a tick before":
					time.AfterFunc(minute-ms, answer)
				case "checked across it":
					during := func() { time.Sleep(2 * ms) }
					s.mod.during.Store(&during)
					time.AfterFunc(minute-ms, answer)
				}
				time.Sleep(minute + time.Second)
				synctest.Wait()
				want := "unanswered"
				if taken {
					want = "answered by a"
				}
				if got := s.summary(); got != want {
					t.Errorf("outcome %s, but the gateway took the answer: %v", got, taken)
				}
				// In the very instant either may win.
				if when == "a tick before" && !taken || when == "checked across it" && taken {
					t.Errorf("taken = %v", taken)
				}
				s.spent()
			})
		})
	}
}

func TestRefusedAnswerSettlesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.attach("a")
		for _, tc := range []struct{ name, answer, field string }{
			{"no question named", `{"answers":[]}`, "answers"},
			{"a label not offered", `{"answers":[{"id":"store","selected":["Oracle"]}]}`, "answers[0].selected"},
			{"two labels", `{"answers":[{"id":"store","selected":["SQLite","Postgres"]}]}`, "answers[0].selected"},
			{"label and custom", `{"answers":[{"id":"store","selected":["SQLite"],"custom":"x"}]}`, "answers[0].custom"},
			{"white space", `{"answers":[{"id":"store","selected":[],"custom":" \t "}]}`, "answers[0].custom"},
			{"twice", `{"answers":[{"id":"store","selected":[]},{"id":"store","selected":[]}]}`, "answers[1].id"},
			{"not an answer", `{"answer":1}`, "answers"},
		} {
			refused, taken := s.e.answer("a", "", tc.answer)
			if taken || refused == nil || refused.Code != CodeBadAnswer || refused.Field != tc.field || refused.Message == "" {
				t.Errorf("%s: refusal = %+v, want %s at %s", tc.name, refused, CodeBadAnswer, tc.field)
			}
		}
		if _, ended := s.ended["a"]; ended {
			t.Error("the refused client lost its claim")
		}
		s.mod.fail.Store(true)
		refused, _ := s.e.answer("a", "", good)
		if refused == nil || refused.Code != CodeValidatorFailed || refused.Message != ForPerson(CodeValidatorFailed) {
			t.Errorf("failing module: refusal = %+v, want %s", refused, CodeValidatorFailed)
		}
		s.mod.fail.Store(false)
		if got := s.summary(); got != "open" {
			t.Fatalf("after refusals: %s, want open", got)
		}
		if _, taken := s.e.answer("a", "", good); !taken {
			t.Error("the good answer was not taken")
		}
	})
}

func TestParentCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		a := r.agent(nil)
		ctx, cancel := context.WithCancel(t.Context())
		timed, blocked := make(chan error, 1), make(chan error, 1)
		go func() { _, err := r.svc.AskTimed(ctx, r.request(a), "c1", minute); timed <- err }()
		go func() { _, err := r.svc.Ask(ctx, r.request(a)); blocked <- err }()
		synctest.Wait()
		cancel()
		if err := <-timed; code(err) != CodeAborted {
			t.Errorf("AskTimed error = %v, want %s", err, CodeAborted)
		}
		if err := <-blocked; code(err) != CodeAborted {
			t.Errorf("Ask error = %v, want %s", err, CodeAborted)
		}
		if _, err := r.svc.Ask(ctx, r.request(a)); code(err) != CodeAborted {
			t.Errorf("Ask after the cancellation = %v, want %s", err, CodeAborted)
		}
		if got := r.gw.count(); got != 2 {
			t.Errorf("%d events went out, want 2", got)
		}
	})
}

// The context ends while the gateway has an answer in hand: the answer counts.
func TestReadyAnswerBeatsCancelledContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan Outcome, 1)
		go func() {
			o, err := r.svc.AskTimed(ctx, r.request(r.agent(nil)), "c1", minute)
			if err != nil {
				t.Errorf("AskTimed error = %v", err)
			}
			got <- o
		}()
		synctest.Wait()
		e := r.gw.last(t)
		settled := e.Settled
		e.Settled = func(s Settlement) { cancel(); settled(s) } // taken, not yet told
		e.answer("a", "", good)
		if o := <-got; o.Status != Answered {
			t.Errorf("status = %d, want answered", o.Status)
		}
	})
}

func TestAskTimedMapsOnlyTheTimeout(t *testing.T) {
	for _, tc := range []struct {
		name string
		end  func(*rig, *fakeEvent)
		want string // code of the error; "" for an outcome
	}{
		{"the deadline", func(*rig, *fakeEvent) { time.Sleep(minute) }, ""},
		{"a client's countdown", func(_ *rig, e *fakeEvent) { e.reject("a", CodeTimedOut) }, ""},
		{"a gateway that is full", func(_ *rig, e *fakeEvent) { e.Cancel(CodeTooMany) }, CodeTooMany},
		{"a withdrawal", func(r *rig, _ *fakeEvent) {
			a, _ := r.reg.Get(r.reg.Live()[0].ID())
			if _, err := r.svc.Withdraw(context.Background(), a, "c1"); err != nil {
				r.t.Error(err)
			}
		}, CodeWithdrawn},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				type both struct {
					o   Outcome
					err error
				}
				got := make(chan both, 1)
				go func() {
					o, err := r.svc.AskTimed(context.Background(), r.request(r.agent(nil)), "c1", minute)
					got <- both{o, err}
				}()
				synctest.Wait()
				tc.end(r, r.gw.last(t))
				b := <-got
				if code(b.err) != tc.want {
					t.Errorf("error = %v, want %q", b.err, tc.want)
				}
				if tc.want == "" && (b.o.Status != Unanswered || b.o.CallID != "c1") {
					t.Errorf("outcome = %+v, want unanswered c1", b.o)
				}
			})
		})
	}
}
