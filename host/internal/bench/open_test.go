package bench

import (
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"meanwhile/host/internal/id"
)

// lines is how many connections the asks of W3 come over.
const lines = 64

// known is one open ask.
type known struct{ session, call string }

// open is W3 and W4: many asks at once, answered all; and the same again,
// killed, restarted and answered late.
func (b *bench) open() {
	b.t.Helper()
	for _, each := range b.each {
		b.openAll(each)
		b.survive(each)
	}
}

func (b *bench) openAll(each int) {
	b.t.Helper()
	p := b.start(b.dir(), fmt.Sprint("w3-", each), tokens{})
	defer p.end(syscall.SIGTERM)
	rooms, _ := p.rooms(b.sessions)
	before := p.resident()
	asks, took := p.askAll(rooms, each)
	n := len(asks)
	name := fmt.Sprint("W3 ", n, " open")
	log := p.logBytes(asks[0].session) / each
	grown := (p.resident() - before) / int64(n)
	b.line(name, "opened in %v (%.0f/s); %d B resident an ask, its log %d, so %d beyond; aims 100000 in 5 s, 1024",
		took.Round(time.Millisecond), perSecond(n, took), grown, log, grown-int64(log))
	begin := time.Now()
	who := p.person(n)
	select {
	case <-who.done:
	case <-who.Done():
		b.t.Errorf("%s: the answering client was dropped, %d answered and %d settled: %v", name, who.answered.Load(), who.settled.Load(), who.Err())
		return
	case <-time.After(within):
		b.t.Errorf("%s: %d were delivered and %d settled", name, who.answered.Load(), who.settled.Load())
		return
	}
	settled := time.Since(begin)
	got := p.handedOver(rooms, each)
	b.line(name, "answered all in %v (%.0f/s), handed over %d of %d %v after the first answer; %d MiB on disk",
		settled.Round(time.Millisecond), perSecond(n, settled), got, n, time.Since(begin).Round(time.Millisecond), p.disk()>>20)
	if got != n {
		b.t.Errorf("%s: %d answers were handed over", name, got)
	}
}

func (b *bench) survive(each int) {
	b.t.Helper()
	dir := b.dir()
	p := b.start(dir, "", tokens{})
	rooms, _ := p.rooms(b.sessions)
	asks, _ := p.askAll(rooms, each)
	p.end(syscall.SIGKILL)

	p = b.start(dir, fmt.Sprint("w4-", each), p.tokens)
	defer p.end(syscall.SIGTERM)
	c := p.connect(p.tokens.answer, nil)
	start := time.Now()
	ok, err := p.answer(c, asks[0].session, asks[0].call, id.New())
	b.must(err)
	first := time.Since(start)
	if !ok {
		b.t.Errorf("W4: the first answer was not accepted")
	}
	var accepted atomic.Int64
	accepted.Add(1)
	begin := time.Now()
	p.spread(asks[1:], func(i int, k known) error {
		ok, err := p.answer(c, k.session, k.call, id.New())
		if ok {
			accepted.Add(1)
		}
		return err
	})
	took := time.Since(begin)
	b.line(fmt.Sprint("W4 ", len(asks), " killed"), "ready in %v, first answer in %v more, %d of %d survived (answered in %v, %.0f/s); aims 1 s, 300 ms, all",
		p.ready.Round(time.Millisecond), first.Round(time.Millisecond), accepted.Load(), len(asks), took.Round(time.Millisecond), perSecond(len(asks), took))
	if int(accepted.Load()) != len(asks) {
		b.t.Errorf("W4: %d of %d asks survived", accepted.Load(), len(asks))
	}
}

// rooms makes agents with a session each, some to a connection.
func (p *process) rooms(n int) ([]agent, time.Duration) {
	p.b.t.Helper()
	conns := p.agents(min(lines, n))
	out := make([]agent, n)
	begin := time.Now()
	var all sync.WaitGroup
	for i, c := range conns {
		all.Go(func() {
			for k := i; k < n; k += len(conns) {
				out[k] = agent{c.Conn, p.session(c.Conn, k)}
			}
		})
	}
	all.Wait()
	return out, time.Since(begin)
}

// askAll opens asks in all rooms, in turn, over all connections at once. A call
// returns when its ask is recorded and sent out.
func (p *process) askAll(rooms []agent, each int) (asks []known, took time.Duration) {
	p.b.t.Helper()
	asks = make([]known, len(rooms)*each)
	begin := time.Now()
	p.spread(asks, func(i int, _ known) error {
		a := rooms[i%len(rooms)]
		s, err := a.ask(p.b.t.Context(), longAsk, time.Millisecond)
		if err == nil && s.RemainingMs == 0 {
			err = fmt.Errorf("an ask is %s and not open", s.Status)
		}
		asks[i] = known{a.session, s.CallID}
		return err
	})
	return asks, time.Since(begin)
}

// spread works on all asks, many at once.
func (p *process) spread(asks []known, do func(int, known) error) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range 4 * lines {
		all.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(asks) {
					return
				}
				if err := do(i, asks[i]); err != nil {
					p.b.t.Errorf("ask %d: %v", i, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// handedOver counts what the agents are given of their answers.
func (p *process) handedOver(rooms []agent, each int) int {
	var got atomic.Int64
	all := make([]known, len(rooms))
	p.spread(all, func(i int, _ known) error {
		var err error
		var n, tries int
		// A settled ask is recorded a moment after its clients are told.
		for n, tries = 0, 0; n < each && err == nil && tries < 100; tries++ {
			n, err = claim(p, rooms[i])
		}
		got.Add(int64(n))
		return err
	})
	return int(got.Load())
}

func claim(p *process, a agent) (int, error) {
	var out struct{ Messages []struct{ ID string } }
	err := a.Call(p.b.t.Context(), "inbox/claim", obj{"sessionId": a.session, "holder": "bench"}, &out)
	return len(out.Messages), err
}
