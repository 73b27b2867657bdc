package bench

import (
	"sync/atomic"
	"syscall"
	"time"

	"meanwhile/host/internal/id"
)

// shortAsk is the shortest window, in seconds.
const shortAsk = 1

// expire is W5: nobody is there, every ask runs out, and is answered late.
func (b *bench) expire() {
	b.t.Helper()
	p := b.start(b.dir(), "w5", tokens{})
	defer p.end(syscall.SIGTERM)
	rooms := p.agents(crowdSize)
	asks := make([]known, len(rooms)*b.late)
	late := make(times, len(asks))
	begin := time.Now()
	p.spread(asks, func(i int, _ known) error {
		a := rooms[i%len(rooms)]
		start := time.Now()
		s, err := a.ask(b.t.Context(), shortAsk, within)
		late[i] = time.Since(start) - shortAsk*time.Second
		if err == nil && (s.Status != "pending" || s.RemainingMs != 0) {
			b.t.Errorf("an ask that nobody saw is %s, %d ms left", s.Status, s.RemainingMs)
		}
		asks[i] = known{a.session, s.CallID}
		return err
	})
	took := time.Since(begin)
	b.line("W5 expiry", "%d asks of 1 s, %d at once, all in %v (%.0f/s); result after the window p50 %v, p99 %v = %.1f puts",
		len(asks), 4*lines, took.Round(time.Millisecond), perSecond(len(asks), took), late.at(50), late.at(99), float64(late.at(50))/float64(b.put))
	c := p.connect(p.tokens.answer, nil)
	var accepted, twice atomic.Int64
	begin = time.Now()
	p.spread(asks, func(i int, k known) error {
		submission := id.New()
		ok, err := p.answer(c, k.session, k.call, submission)
		if ok {
			accepted.Add(1)
		}
		return err
	})
	took = time.Since(begin)
	p.spread(asks, func(_ int, k known) error {
		if ok, _ := p.answer(c, k.session, k.call, id.New()); ok { // REPLY_QUEUED is an error
			twice.Add(1)
		}
		return nil
	})
	got := p.handedOver(rooms, b.late)
	b.line("W5 late answers", "%d of %d accepted, %.0f/s = %.2f per bare Put; %d handed over, %d accepted twice",
		accepted.Load(), len(asks), perSecond(len(asks), took), perSecond(len(asks), took)*b.put.Seconds(), got, twice.Load())
	if int(accepted.Load()) != len(asks) || got != len(asks) || twice.Load() != 0 {
		b.t.Errorf("W5: %d accepted, %d handed over, %d twice, of %d", accepted.Load(), got, twice.Load(), len(asks))
	}
}
