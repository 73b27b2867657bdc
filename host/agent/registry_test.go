package agent_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"meanwhile/host/agent"
	"meanwhile/host/agent/agenttest"
	"meanwhile/host/agent/inbox"
	"meanwhile/host/agent/loop"
	"meanwhile/host/llm"
	"meanwhile/host/session"
	"meanwhile/host/session/sessiontest"
	"meanwhile/shared/event"
)

func external(h *event.Header) { h.Agent = &event.Agent{Kind: event.KindExternal, Name: "bot"} }

// stub is a driver whose stop the test can hold up.
type stub struct {
	agent.Driver // nil: anything else it is asked for panics
	status       agent.State
	hold         chan struct{}
	mu           sync.Mutex
	woken        int
	stopped      bool
}

func (s *stub) Start()               {}
func (s *stub) Status() agent.Status { return agent.Status{State: s.status} }
func (s *stub) Wake(int64)           { s.mu.Lock(); s.woken++; s.mu.Unlock() }
func (s *stub) Stop(context.Context) error {
	if s.hold != nil {
		<-s.hold
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	return nil
}

// stubs makes worlds of stub drivers.
func stubs(t *testing.T, o agent.Options, make func(a *agent.Agent) *stub) *agenttest.World {
	o.Attach = func(a *agent.Agent) (agent.Driver, error) { return make(a), nil }
	return agenttest.New(t, agenttest.Options{Agents: o})
}

func idle(*agent.Agent) *stub { return &stub{status: agent.Idle} }

func TestResumeOpensOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers = 50
		store := sessiontest.Open(t)
		log := sessiontest.Create(t, store)
		let, opened := make(chan struct{}), 0
		w := agenttest.New(t, agenttest.Options{Store: store, Agents: agent.Options{
			Open: func(ctx context.Context, id string) (*session.Log, error) {
				opened++ // two at once would be a race as well
				<-let
				return store.Open(ctx, id)
			}}})
		leaving, leave := context.WithCancel(context.Background())
		left := make(chan error, 1)
		go func() {
			_, err := w.Agents.Resume(leaving, log.ID())
			left <- err
		}()
		synctest.Wait()
		got := make([]*agent.Agent, callers)
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() { got[i] = w.Resume(log.ID()) })
		}
		synctest.Wait()
		leave() // the first to ask, who began it
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("Resume() of the one that left = %v, want %v", err, context.Canceled)
		}
		close(let)
		all.Wait()
		for i, a := range got {
			if a == nil || a != got[0] {
				t.Fatalf("caller %d got %p, the first %p", i, a, got[0])
			}
		}
		if opened != 1 {
			t.Errorf("opened %d times, want once", opened)
		}
		if !w.Agents.IsLive(got[0]) {
			t.Error("the resumed agent is not live")
		}
	})
}

func TestResumeFailsForAllAndThenAgain(t *testing.T) {
	fail := errors.New("no")
	store := sessiontest.Open(t)
	log := sessiontest.Create(t, store)
	var mu sync.Mutex
	broken := true
	w := agenttest.New(t, agenttest.Options{Store: store, Agents: agent.Options{
		Open: func(ctx context.Context, id string) (*session.Log, error) {
			mu.Lock()
			defer mu.Unlock()
			if broken {
				return nil, fail
			}
			return store.Open(ctx, id)
		}}})
	if _, err := w.Agents.Resume(context.Background(), log.ID()); !errors.Is(err, fail) {
		t.Errorf("Resume() = %v, want %v", err, fail)
	}
	mu.Lock()
	broken = false
	mu.Unlock()
	w.Resume(log.ID())
	if _, err := w.Agents.Resume(context.Background(), "nobody"); !errors.Is(err, session.ErrNoSession) {
		t.Errorf("Resume(nobody) = %v, want %v", err, session.ErrNoSession)
	}
}

func TestLiveIsTheExactInstance(t *testing.T) {
	w := stubs(t, agent.Options{}, idle)
	old := w.Create(event.Header{})
	if err := w.Agents.Remove(context.Background(), old); err != nil {
		t.Fatal(err)
	}
	if _, ok := w.Agents.Get(old.ID()); ok || w.Agents.IsLive(old) {
		t.Error("a removed agent is live")
	}
	fresh := w.Resume(old.ID())
	if fresh == old || w.Agents.IsLive(old) || !w.Agents.IsLive(fresh) {
		t.Error("the id is live again, and the old instance with it")
	}
	for _, err := range []error{old.Steer(context.Background(), agenttest.Message("m")), old.Continue(), errorOf(old.RemoveQueued(context.Background(), "m"))} {
		if !errors.Is(err, agent.ErrNotLive) {
			t.Errorf("call on the old instance = %v, want %v", err, agent.ErrNotLive)
		}
	}
	if err := w.Agents.Remove(context.Background(), old); err != nil || !w.Agents.IsLive(fresh) {
		t.Error("removing the old instance removed the new one")
	}
	if w.Agents.IsLive(nil) {
		t.Error("nil is live")
	}
	other := stubs(t, agent.Options{}, idle)
	if other.Agents.IsLive(fresh) {
		t.Error("an agent of another registry is live")
	}
}

func errorOf(_ bool, err error) error { return err }

func TestResumeWaitsForTheOldDriver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		w := stubs(t, agent.Options{}, func(*agent.Agent) *stub { return &stub{status: agent.Idle, hold: hold} })
		old := w.Create(event.Header{})
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := w.Agents.Remove(ctx, old); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Remove() of a driver that does not stop = %v, want %v", err, context.DeadlineExceeded)
		}
		got := make(chan *agent.Agent, 1)
		go func() { got <- w.Resume(old.ID()) }()
		synctest.Wait()
		select {
		case <-got:
			t.Fatal("resumed beside a driver that still runs")
		default:
		}
		close(hold)
		if a := <-got; !old.Driver().(*stub).stopped || !w.Agents.IsLive(a) {
			t.Error("not resumed after the old driver stopped")
		}
	})
}

func TestChildren(t *testing.T) {
	ctx := context.Background()
	w := stubs(t, agent.Options{}, idle)
	root := w.Create(event.Header{})
	launch := func(owner *agent.Agent, id string) (*agent.Agent, error) {
		return w.Agents.Launch(ctx, id, owner, func(ctx context.Context) (*session.Log, error) {
			return w.Store.Create(ctx, event.Header{ID: id})
		})
	}
	child, err := launch(root, "child")
	if err != nil {
		t.Fatal(err)
	}
	grandchild, err := launch(child, "grandchild")
	if err != nil {
		t.Fatal(err)
	}
	if got := w.Resume("child"); got != child || got.Owner() != root {
		t.Error("Resume of an owned child gives another agent")
	}
	if _, err := launch(root, "child"); !errors.Is(err, agent.ErrLive) {
		t.Errorf("Launch() of a live session = %v, want %v", err, agent.ErrLive)
	}
	if err := w.Agents.Remove(ctx, root); err != nil {
		t.Fatal(err)
	}
	for _, a := range []*agent.Agent{child, grandchild} {
		if w.Agents.IsLive(a) || !a.Driver().(*stub).stopped {
			t.Errorf("%s lives on without its owner", a.ID())
		}
	}
	if _, err := launch(root, "orphan"); !errors.Is(err, agent.ErrNotLive) {
		t.Errorf("Launch() under an owner that is gone = %v, want %v", err, agent.ErrNotLive)
	}
	if got := w.Resume("child"); got.Owner() != nil {
		t.Error("a child resumed later still has an owner")
	}
}

// Who sees a new child's session before its agent is made gets the child, not a
// second agent that owns itself.
func TestChildIsNeverResumedAsARoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := stubs(t, agent.Options{}, idle)
		root := w.Create(event.Header{})
		created, let := make(chan struct{}), make(chan struct{})
		go func() {
			_, err := w.Agents.Launch(context.Background(), "child", root, func(ctx context.Context) (*session.Log, error) {
				l, err := w.Store.Create(ctx, event.Header{ID: "child"})
				close(created)
				<-let
				return l, err
			})
			if err != nil {
				t.Error(err)
			}
		}()
		<-created
		got := make(chan *agent.Agent, 1)
		go func() { got <- w.Resume("child") }()
		synctest.Wait()
		close(let)
		if a := <-got; a.Owner() != root {
			t.Error("resumed without its owner")
		}
	})
}

func TestIdleAgentsClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		status := map[string]agent.State{"running": agent.Running, "waiting": agent.Waiting, "blocked": agent.Blocked, "queued": agent.Queued}
		w := stubs(t, agent.Options{IdleMax: 1, IdleAfter: time.Minute}, func(a *agent.Agent) *stub {
			s := status[a.ID()]
			if s == "" {
				s = agent.Idle
			}
			return &stub{status: s}
		})
		for _, id := range []string{"running", "waiting", "blocked", "queued", "idle", "used"} {
			w.Create(event.Header{ID: id})
		}
		time.Sleep(time.Minute - 1)
		w.Create(event.Header{ID: "early"})
		synctest.Wait()
		if n := len(w.Agents.Live()); n != 7 {
			t.Errorf("%d agents live a tick before the time, want all 7", n)
		}
		time.Sleep(time.Nanosecond)
		w.Agents.Get("used")
		w.Create(event.Header{ID: "late"})
		synctest.Wait()
		live := map[string]bool{}
		for _, a := range w.Agents.Live() {
			live[a.ID()] = true
		}
		want := map[string]bool{"running": true, "waiting": true, "blocked": true, "used": true, "early": true, "late": true}
		if fmt.Sprint(live) != fmt.Sprint(want) {
			t.Errorf("live = %v, want %v", live, want)
		}
	})
}

// A lease, or a call that is inside, keeps an agent.
func TestLeasedAgentsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := agenttest.New(t, agenttest.Options{Agents: agent.Options{IdleMax: 1, IdleAfter: time.Minute}})
		h := event.Header{ID: "leased"}
		external(&h)
		a := w.Create(h)
		agenttest.Steer(t, a, "m1")
		if got, err := a.Passive().Claim(context.Background(), "one", 9, time.Hour); err != nil || len(got) != 1 {
			t.Fatalf("Claim() = %v, %v", got, err)
		}
		time.Sleep(2 * time.Minute)
		w.Create(event.Header{ID: "other"})
		synctest.Wait()
		if !w.Agents.IsLive(a) {
			t.Error("an agent that holds a lease was closed")
		}
		time.Sleep(time.Hour)
		w.Create(event.Header{ID: "another"})
		synctest.Wait()
		if w.Agents.IsLive(a) {
			t.Error("the agent stays although its lease has ended")
		}
	})
}

func TestTooManyAgents(t *testing.T) {
	w := stubs(t, agent.Options{LiveMax: 2}, idle)
	a := w.Create(event.Header{})
	w.Create(event.Header{})
	log := sessiontest.Create(t, w.Store)
	if _, err := w.Agents.Resume(context.Background(), log.ID()); !errors.Is(err, agent.ErrTooMany) {
		t.Errorf("Resume() = %v, want %v", err, agent.ErrTooMany)
	}
	if err := w.Agents.Remove(context.Background(), a); err != nil {
		t.Fatal(err)
	}
	w.Resume(log.ID())
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		store := sessiontest.Open(t)
		log := sessiontest.Create(t, store)
		w := agenttest.New(t, agenttest.Options{Store: store, Agents: agent.Options{
			Open: func(ctx context.Context, id string) (*session.Log, error) {
				select {
				case <-let:
				case <-ctx.Done():
				}
				return store.Open(context.WithoutCancel(ctx), id)
			},
			Attach: func(a *agent.Agent) (agent.Driver, error) { return idle(a), nil }}})
		a := w.Create(event.Header{})
		got := make(chan error, 1)
		go func() {
			_, err := w.Agents.Resume(context.Background(), log.ID())
			got <- err
		}()
		synctest.Wait()
		if err := w.Agents.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		if err := <-got; !errors.Is(err, agent.ErrClosed) {
			t.Errorf("Resume() while closing = %v, want %v", err, agent.ErrClosed)
		}
		if !a.Driver().(*stub).stopped || w.Agents.IsLive(a) {
			t.Error("Close left an agent")
		}
		if _, err := w.Agents.Resume(context.Background(), a.ID()); !errors.Is(err, agent.ErrClosed) {
			t.Errorf("Resume() after = %v, want %v", err, agent.ErrClosed)
		}
	})
}

func TestDamagedSessionsGetNoAgent(t *testing.T) {
	mem := sessiontest.NewMem()
	first := agenttest.New(t, agenttest.Options{Backend: mem})
	log := sessiontest.Create(t, first.Store)
	sessiontest.Append(t, log, event.Message{ID: "m"}.Draft())
	sessiontest.Append(t, log, event.Message{ID: "n"}.Draft())
	disk := sessiontest.NewMem(mem.Batches()...)
	disk.Corrupt(log.ID(), 0, func([]byte) []byte { return []byte("{") })
	w := agenttest.New(t, agenttest.Options{Backend: disk})
	if _, err := w.Agents.Resume(context.Background(), log.ID()); !errors.Is(err, session.ErrDamaged) {
		t.Errorf("Resume() = %v, want %v", err, session.ErrDamaged)
	}
}

func TestSteerIfDecidesUnderTheLock(t *testing.T) {
	w := stubs(t, agent.Options{}, idle)
	a := w.Create(event.Header{})
	no := errors.New("somebody was faster")
	const callers = 20
	var all sync.WaitGroup
	errs := make([]error, callers)
	for i := range callers {
		all.Go(func() {
			errs[i] = a.SteerIf(context.Background(), func(s *session.State) (event.Message, error) {
				if s.Inbox.Len() > 0 {
					return event.Message{}, no
				}
				return agenttest.Message(fmt.Sprint("m", i)), nil
			})
		})
	}
	all.Wait()
	won := 0
	for _, err := range errs {
		switch {
		case err == nil:
			won++
		case !errors.Is(err, no):
			t.Errorf("SteerIf() = %v, want nil or %v", err, no)
		}
	}
	if d := a.Driver().(*stub); won != 1 || d.woken != 1 {
		t.Errorf("%d of %d were queued and the driver woken %d times, want 1 and 1", won, callers, d.woken)
	}
}

func TestSteerOfACallerThatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := agenttest.Respond(func(int, llm.Request) agenttest.Reply { return agenttest.Say("ok") })
		w := agenttest.New(t, agenttest.Options{Model: model})
		a := w.Create(event.Header{})
		w.Mem.Hold()
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- a.Steer(ctx, agenttest.Message("m1")) }()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Steer() = %v, want %v", err, context.Canceled)
		}
		w.Mem.Release()
		synctest.Wait()
		if n := len(model.Requests()); n != 1 {
			t.Errorf("%d requests, want 1: the message was recorded after all", n)
		}
	})
}

func TestSteerRefuses(t *testing.T) {
	w := stubs(t, agent.Options{}, idle)
	a := w.Create(event.Header{})
	agenttest.Steer(t, a, "m1")
	if err := a.Send(context.Background(), agenttest.Message("m1")); !errors.Is(err, inbox.ErrPending) {
		t.Errorf("Send() of a waiting id = %v, want %v", err, inbox.ErrPending)
	}
	if ok, err := a.RemoveQueued(context.Background(), "m1"); !ok || err != nil {
		t.Errorf("RemoveQueued() = %t, %v, want true", ok, err)
	}
	if ok, err := a.RemoveQueued(context.Background(), "m1"); ok || err != nil {
		t.Errorf("RemoveQueued() again = %t, %v, want false", ok, err)
	}
}

// At the start a queue goes on by itself after a turn that completed, and waits
// after one that was cut short.
func TestQueuesAtTheStart(t *testing.T) {
	for _, tc := range []struct {
		kind string
		want agent.State
	}{
		{"", agent.Idle},
		{event.TurnCompleted, agent.Idle},
		{event.TurnMaxTokens, agent.Idle},
		{event.TurnBlocked, agent.Idle},
		{event.TurnAborted, agent.Queued},
		{event.TurnError, agent.Queued},
		{event.TurnInterrupted, agent.Queued},
	} {
		t.Run(tc.kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				model := agenttest.Respond(func(int, llm.Request) agenttest.Reply { return agenttest.Say("ok") })
				w := agenttest.New(t, agenttest.Options{Model: model, Loop: loop.Options{}})
				log := sessiontest.Create(t, w.Store)
				if tc.kind != "" {
					sessiontest.Append(t, log, event.TurnStart{Turn: 1}.Draft(), event.TurnEnd{Turn: 1, Kind: tc.kind}.Draft())
				}
				sessiontest.Append(t, log, event.Spliced{Target: event.NextTurn, Inserted: []event.Message{agenttest.Message("m1")}}.Draft())
				a := w.Resume(log.ID())
				synctest.Wait()
				if got := a.Status(); got.State != tc.want {
					t.Errorf("status = %v, want %v", got, tc.want)
				}
				if got, want := len(model.Requests()), 1; (tc.want == agent.Idle) != (got == want) {
					t.Errorf("%d requests", got)
				}
			})
		})
	}
}

// Agents that are asked for, steered, removed in the middle of their turns and
// resumed at once: one at a time writes the log, and no message is lost.
func TestHammer(t *testing.T) {
	const writers, each = 6, 30
	model := agenttest.Respond(func(n int, _ llm.Request) agenttest.Reply {
		if n%3 == 0 {
			return agenttest.Use(agenttest.Call("", "nothing", "{}"))
		}
		return agenttest.Say("ok")
	})
	w := agenttest.New(t, agenttest.Options{Model: model})
	id := sessiontest.Create(t, w.Store).ID()
	ctx := context.Background()
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			for j := range each {
				for {
					a := w.Resume(id)
					err := a.Steer(ctx, agenttest.Message(fmt.Sprintf("w%d-%d", i, j)))
					if j%5 == 4 {
						if err := w.Agents.Remove(ctx, a); err != nil {
							t.Error(err)
						}
					}
					if err == nil {
						break
					}
					if !errors.Is(err, agent.ErrNotLive) {
						t.Error(err)
						break
					}
				}
			}
		})
	}
	all.Wait()
	a := w.Resume(id)
	agenttest.Steer(t, a, "last")
	if err := a.Driver().Settled(ctx); err != nil {
		t.Fatal(err)
	}
	if got := a.Status(); got.State != agent.Idle {
		t.Errorf("status = %v, want idle", got)
	}
	admitted := map[string]int{}
	turns := 0
	for _, e := range sessiontest.Events(t, a.Log()) {
		switch e.Type {
		case event.TypeUserMessage:
			admitted[agenttest.Line(t, e)]++
		case event.TypeTurnStart:
			turns++
		case event.TypeTurnEnd:
			turns--
		}
		if turns < 0 || turns > 1 {
			t.Fatalf("event %d: %d turns are open", e.Seq, turns)
		}
	}
	if want := writers*each + 1; len(admitted) != want {
		t.Errorf("%d messages were admitted, want %d", len(admitted), want)
	}
	for line, n := range admitted {
		if n != 1 {
			t.Errorf("%s %d times", line, n)
		}
	}
}
