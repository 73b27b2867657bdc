package bench

import (
	"fmt"
	"sync"
	"syscall"
	"time"
)

const (
	crowdSize = 64
	longAsk   = 3600 // seconds; nothing expires here
)

// oneAtATime is W1: an outside agent asks, a person's client answers at once
// over its waterfall, the agent has the result.
func (b *bench) oneAtATime() {
	b.t.Helper()
	p := b.start(b.dir(), "w1", tokens{})
	defer p.end(syscall.SIGTERM)
	p.person(0)
	a := p.agents(1)[0]
	var d times
	for i := range b.asks + b.asks/10 {
		start := time.Now()
		s, err := a.ask(b.t.Context(), longAsk, within)
		b.must(err)
		if s.Status != "answered" {
			b.t.Fatalf("an ask is %s", s.Status)
		}
		if i >= b.asks/10 { // warm
			d = append(d, time.Since(start))
		}
	}
	bound := 2*b.put + 2*b.rtt
	b.line("W1 ask to result", "p50 %v, p99 %v = %.2f × two puts and two round trips (%v); aim 2.00",
		d.at(50), d.at(99), float64(d.at(50))/float64(bound), bound)
}

// crowd is W2: 64 agents ask over and over; people answer over one connection,
// and over several that all get every question.
func (b *bench) crowd() {
	b.t.Helper()
	for _, people := range b.answerers {
		p := b.start(b.dir(), fmt.Sprint("w2-", people), tokens{})
		for range people {
			p.person(0)
		}
		agents := p.agents(crowdSize)
		var mu sync.Mutex
		var d times
		var all sync.WaitGroup
		begin := time.Now()
		for _, a := range agents {
			all.Go(func() {
				var mine times
				for time.Since(begin) < b.long {
					start := time.Now()
					s, err := a.ask(b.t.Context(), longAsk, within)
					if err != nil || s.Status != "answered" {
						b.t.Errorf("an ask is %q, %v", s.Status, err)
						return
					}
					mine = append(mine, time.Since(start))
				}
				mu.Lock()
				defer mu.Unlock()
				d = append(d, mine...)
			})
		}
		all.Wait()
		took := time.Since(begin)
		b.line("W2 64 askers", "%2d answering clients: %.0f asks/s = %.2f per bare synced Put; p50 %v, p99 %v; aim 6000",
			people, perSecond(len(d), took), perSecond(len(d), took)*b.put.Seconds(), d.at(50), d.at(99))
		p.end(syscall.SIGTERM)
	}
}
