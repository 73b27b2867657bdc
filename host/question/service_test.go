package question

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"meanwhile/host/agent"
	"meanwhile/shared/projection"
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

// retained opens n asks and returns what each keeps in memory, encoded questions
// included, the log and the gateway's part not.
func retained(t testing.TB, n int) float64 {
	r := newRig(t)
	r.gw.drop = true
	q := r.request(r.agent(nil))
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("call-%08d", i)
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for _, id := range ids {
		if _, err := r.svc.Start(q, id, time.Hour, func(Outcome) {}); err != nil {
			t.Fatal(err)
		}
	}
	after := heap()
	if got := r.svc.Stats().Open; got != n {
		t.Fatalf("%d asks open, want %d", got, n)
	}
	runtime.KeepAlive(ids)
	return float64(after-before) / float64(n)
}

func TestOpenAskIsSmall(t *testing.T) {
	if got := retained(t, 10_000); got > 1024 {
		t.Errorf("an open ask keeps %.0f bytes, want at most 1024", got)
	}
}

func BenchmarkOpenAsks(b *testing.B) {
	b.ReportAllocs()
	b.ReportMetric(retained(b, max(b.N, 1000)), "retained-B/ask")
}
