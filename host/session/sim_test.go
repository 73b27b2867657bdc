package session_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"meanwhile/host/session"
	"meanwhile/host/session/sessiontest"
	"meanwhile/shared/event"
)

// simSeed runs one seed alone, as a failing run prints it.
var simSeed = flag.Uint64("simseed", 0, "run this seed of TestSimulation only")

// sim drives one session with random legal batches on a disk that lags, and
// crashes it now and then.
type sim struct {
	t     *testing.T
	rng   *rand.Rand
	mem   *sessiontest.Mem
	store *session.Store
	log   *session.Log
	id    string
	acked []event.Event // what a Commit said is on disk
	waits []*session.Commit
	n     int

	checkpoints int // crashes that had one
}

func TestSimulation(t *testing.T) {
	seeds := []uint64{1, 2, 3, 4}
	if testing.Short() {
		seeds = seeds[:1]
	}
	if *simSeed != 0 {
		seeds = []uint64{*simSeed}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			s := &sim{t: t, rng: rand.New(rand.NewPCG(seed, 0)), mem: sessiontest.NewMem(), id: "s"}
			s.open()
			for range 1200 {
				s.step()
			}
			s.crash()
			if s.checkpoints == 0 {
				t.Error("no crash came with a checkpoint: the run is too short")
			}
		})
	}
}

func (s *sim) open() {
	var err error
	s.store, err = session.Open(s.mem, session.Options{Fatal: func(err error) { s.t.Errorf("storage failed: %v", err) }})
	if err != nil {
		s.t.Fatal(err)
	}
	s.log, err = s.store.Open(ctx, s.id)
	if errors.Is(err, session.ErrNoSession) {
		s.log, err = s.store.Create(ctx, event.Header{ID: s.id})
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.mem.Hold()
}

func (s *sim) step() {
	switch n := s.rng.IntN(100); {
	case n < 1:
		s.crash()
		s.open()
	case n < 40:
		s.mem.Sync(s.rng.IntN(3))
		s.collect()
	default:
		c, err := s.log.Update(s.decide)
		if err != nil {
			s.t.Fatalf("update: %v", err)
		}
		s.waits = append(s.waits, c)
	}
}

// decide picks one change that fits the state.
func (s *sim) decide(st *session.State) ([]event.Draft, error) {
	s.n++
	id := fmt.Sprint("x", s.n)
	if !st.TurnOpen {
		if st.Inbox.Len() > 0 && s.rng.IntN(2) == 0 {
			target := event.NextStep
			if len(st.Inbox.Queue(target)) == 0 {
				target = event.NextTurn
			}
			m := st.Inbox.Queue(target)[0]
			return []event.Draft{event.TurnStart{Turn: st.Turn + 1}.Draft(), splice(target, 0, 1), m.Draft(), timedHeader()}, nil
		}
		return []event.Draft{splice(event.NextTurn, int64(len(st.Inbox.Queue(event.NextTurn))), 0, msg(id, "x"))}, nil
	}
	switch s.rng.IntN(4) {
	case 0:
		if len(st.Calls) > 0 {
			text := []string{`{"pending":true}`, `{"answers":[{"id":"q","selected":["A"]}]}`, "plain"}[s.rng.IntN(3)]
			return []event.Draft{result(st.Turn, st.Step, st.Calls[0].CallID, text)}, nil
		}
	case 1:
		if len(st.Calls) == 0 && s.rng.IntN(3) == 0 {
			return []event.Draft{event.TurnEnd{Turn: st.Turn, Kind: event.TurnCompleted}.Draft()}, nil
		}
	case 2:
		for a := range st.Questions.AllActive {
			if a.State != "continued" {
				continue
			}
			if _, queued := st.Inbox.Reply(a.CallID); queued {
				continue
			}
			reply := event.Message{ID: id, Source: event.Source{Kind: event.SourceReply, CallID: a.CallID, Outcome: event.OutcomeAnswered},
				Text: `{"answers":[{"id":"q","selected":["B"]}]}`}
			return []event.Draft{splice(event.NextStep, int64(len(st.Inbox.Queue(event.NextStep))), 0, reply)}, nil
		}
	}
	if s.rng.IntN(20) == 0 {
		return nil, nil
	}
	return []event.Draft{ask(st.Turn, st.Step, id)}, nil
}

// collect moves what landed to acked.
func (s *sim) collect() {
	for len(s.waits) > 0 {
		select {
		case <-s.waits[0].Done():
		default:
			return
		}
		if err := s.waits[0].Wait(ctx); err != nil {
			s.t.Fatalf("wait: %v", err)
		}
		s.acked = append(s.acked, s.waits[0].Events...)
		s.waits = s.waits[1:]
	}
}

// crash ends the process between two syncs and checks what the next one finds.
func (s *sim) crash() {
	s.collect()
	after := s.mem.Crash()
	s.mem, s.waits = after, nil
	store := sessiontest.OpenOn(s.t, sessiontest.NewMem(after.Batches()...))
	before := int64(len(s.acked))
	if r, ok := store.Row(s.id); !ok || r.Seq+1 < before {
		s.t.Fatalf("row after a crash: %+v, %d events were acknowledged", r, before)
	}
	l, err := store.Open(ctx, s.id)
	if err != nil {
		s.t.Fatal(err)
	}
	events := sessiontest.Events(s.t, l)
	if want, got := lines(s.acked), lines(events[:before]); want != got {
		s.t.Fatalf("acknowledged events (-want +got):\n%s", cmp.Diff(want, got))
	}
	l.View(func(st *session.State) {
		if !st.Balanced() {
			s.t.Fatalf("not balanced after repair: %+v", st.Balance)
		}
	})
	if rec, err := after.Load(s.id); err == nil && rec.Checkpoint != nil {
		s.checkpoints++
	}
	// The checkpoint, if there is one, says the same as the log.
	plain := sessiontest.NewMem(after.Batches()...)
	plain.CorruptRecord(s.id, func(r *session.Record) { r.Checkpoint = nil })
	other := open(s.t, sessiontest.OpenOn(s.t, plain), s.id)
	a, b := state(s.t, l), state(s.t, other)
	// Each repaired on its own, with its own random message ids: none of them
	// is part of the state.
	if a != b {
		s.t.Fatalf("state from checkpoint and from log differ:\n%s", cmp.Diff(b, a))
	}
	// The next life repairs in the same way; what it wrote counts as acknowledged.
	live := open(s.t, sessiontest.OpenOn(s.t, after), s.id)
	s.acked = sessiontest.Events(s.t, live)
	s.mem = sessiontest.NewMem(after.Batches()...)
}

// lines is events as they stand in an export.
func lines(events []event.Event) string {
	var b []byte
	for _, e := range events {
		b = append(event.AppendEvent(b, e), '\n')
	}
	return string(b)
}
