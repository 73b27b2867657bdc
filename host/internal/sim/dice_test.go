package sim

import (
	"math/rand/v2"
	"sync"
	"time"
)

// dice is one source of chance. Each part of the world has its own, so that
// what one part draws does not depend on when another did.
type dice struct {
	mu sync.Mutex
	r  *rand.Rand
}

func newDice(seed, part uint64) *dice { return &dice{r: rand.New(rand.NewPCG(seed, part))} }

// pick gives a number from 0 to n-1.
func (d *dice) pick(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.IntN(n)
}

// in is true in one of n cases.
func (d *dice) in(n int) bool { return d.pick(n) == 0 }

// upTo gives a time of whole milliseconds, 0 and most included.
func (d *dice) upTo(most time.Duration) time.Duration {
	return time.Duration(d.pick(int(most/time.Millisecond)+1)) * time.Millisecond
}
