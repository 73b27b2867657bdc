package question

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"meanwhile/host/session"
	"meanwhile/host/session/sessiontest"
	"meanwhile/shared/event"
	"meanwhile/shared/projection"
)

// Everything that may end a wait happens to many of them at once: each has one
// outcome, what was taken by the gateway is what it was, and nothing is left.
func TestWaitHammer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const asks = 300
		r := newRig(t, func(o *Options) { o.MaxHold = 20 * ms })
		a := r.agent(nil)
		recs := make([]recorder, asks)
		for i := range asks {
			timeout := time.Duration(1+i%7) * ms
			if i%10 == 9 {
				timeout = Blocking
			}
			id := fmt.Sprint("c", i)
			w, err := r.svc.Start(r.request(a), id, timeout, recs[i].done)
			if err != nil {
				t.Fatal(err)
			}
			e := r.gw.last(t)
			for k, do := range []func(){
				func() { e.answer("a", "", good) },
				func() { e.reject("b", CodeTimedOut) },
				func() { e.delegate("c") },
				w.Abort,
				func() {
					if _, err := r.svc.Withdraw(context.Background(), a, id); err != nil {
						t.Errorf("Withdraw error = %v", err)
					}
				},
				func() {
					ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i%9)*ms)
					defer cancel()
					_ = r.svc.AttachWait(ctx, a, id, "d", func(int64) error { return nil })
				},
				func() { e.Left("d") },
			} {
				if (i>>k)&1 == 1 || k == 3 { // every subset, and at last an end
					wait := time.Duration((i*7+k*5)%11) * ms
					go func() { time.Sleep(wait); do() }()
				}
			}
		}
		time.Sleep(time.Second)
		synctest.Wait()
		for i := range recs {
			if got := recs[i].outcomes(); len(got) != 1 {
				t.Errorf("ask %d: %d outcomes %v, want 1", i, len(got), got)
			}
			e := r.gw.events[i]
			phase, _, cancelled := e.state()
			if phase == eventPending {
				t.Errorf("ask %d: its event is still out", i)
			}
			if answered := recs[i].outcomes()[0].Status == Answered; answered && cancelled != "" {
				t.Errorf("ask %d was answered, and its event cancelled with %s", i, cancelled)
			}
		}
		if diff := cmp.Diff(0, r.svc.Stats().Open); diff != "" {
			t.Errorf("asks still open (-want +got):\n%s", diff)
		}
	})
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

// Answers, withdrawals, admissions and discards of the same asks at once. At the
// end the log must tell a story in which everybody was told the truth.
func TestHammer(t *testing.T) {
	const asks, people, rounds = 12, 4, 60
	r := newRig(t)
	a := r.agent(nil)
	for i := range asks {
		r.continued(a, fmt.Sprint("c", i))
	}
	var (
		mu       sync.Mutex
		accepted = map[string]string{} // message → ask
		denied   = map[string]bool{}
		taken    = map[string]bool{} // asks withdrawn
	)
	ctx := context.Background()
	queued := func() (ids []string) {
		a.Log().View(func(s *session.State) {
			for _, m := range s.Inbox.Queue(event.NextStep) {
				ids = append(ids, m.ID)
			}
		})
		return ids
	}
	var wg, pressing sync.WaitGroup
	for p := range people {
		pressing.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(p), 1))
			for n := range rounds {
				ask, id := fmt.Sprint("c", rnd.IntN(asks)), fmt.Sprintf("m-%d-%d", p, n)
				for range 1 + rnd.IntN(2) { // sometimes pressed twice
					pressing.Go(func() {
						res, err := r.svc.Answer(ctx, a, ask, []byte(good), id, "")
						mu.Lock()
						defer mu.Unlock()
						switch {
						case err == nil && res.Accepted:
							accepted[id] = ask
						case err == nil || code(err) == CodeReplyQueued:
							denied[id] = true
						default:
							t.Errorf("Answer error = %v", err)
						}
					})
				}
				runtime.Gosched()
			}
		})
	}
	done := make(chan struct{})
	wg.Go(func() { pressing.Wait(); close(done) })
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			for _, id := range queued() {
				if _, err := a.RemoveQueued(ctx, id); err != nil {
					t.Errorf("discard: %v", err)
				}
			}
		}
	})
	wg.Go(func() {
		for i := range asks - 1 { // the last is left to be answered
			w, ask := fmt.Sprint("w", i), fmt.Sprint("c", i)
			r.call(a, w, projection.WithdrawName, fmt.Sprintf(`{"callId":%q}`, ask))
			ok, err := r.svc.Withdraw(ctx, a, ask)
			if err != nil {
				t.Errorf("Withdraw error = %v", err)
			}
			mu.Lock()
			taken[ask] = ok
			mu.Unlock()
			r.result(a, w, fmt.Sprintf(`{"withdrawn":%v}`, ok))
			runtime.Gosched()
		}
		for _, id := range queued() {
			if _, err := a.Passive().Admit(ctx, []string{id}); err != nil {
				t.Errorf("admit: %v", err)
			}
		}
	})
	wg.Wait()

	set := projection.NewSet(a.Log().Header())
	spliced, gone := map[string]bool{}, map[string]bool{}
	for _, e := range sessiontest.Events(t, a.Log()) {
		if e.Type == event.TypeSpliced {
			d, err := event.DecodeSpliced(e.Data)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range d.Inserted {
				if at, _ := judge(set, m.Source.CallID, m.ID); at != standsOpen {
					t.Errorf("event %d queues reply %s to %s, which stands %d", e.Seq, m.ID, m.Source.CallID, at)
				}
				spliced[m.ID] = true
			}
		}
		if err := set.Apply(e, nil); err != nil {
			t.Fatal(err)
		}
		for ask := range taken {
			if _, active := set.Questions.Active(ask); !active {
				gone[ask] = true
			}
		}
	}
	for id := range accepted {
		if !spliced[id] {
			t.Errorf("reply %s was accepted and is not in the log", id)
		}
	}
	for id := range spliced {
		if _, ok := accepted[id]; !ok {
			t.Errorf("reply %s is in the log and nobody was told", id)
		}
	}
	for ask, ok := range taken {
		if ok && !gone[ask] {
			t.Errorf("ask %s was withdrawn and is still active", ask)
		}
	}
	t.Logf("%d accepted, %d denied, withdrawn %v", len(accepted), len(denied), taken)
}
