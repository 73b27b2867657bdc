package sim

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "run this seed of TestSim alone, with its story")
	seedsFlag = flag.Int("seeds", 0, "run so many seeds of TestSim; 0: as many as fit a few seconds")
	firstFlag = flag.Uint64("first", 1, "the first seed")
	everyFlag = flag.Uint64("every", 1, "run each n-th seed")
)

// quickFor bounds TestSim in an ordinary test run.
const quickFor = 8 * time.Second

// TestSim runs seeds. A failure names its seed.
func TestSim(t *testing.T) {
	if env := os.Getenv("SIM_SEED"); env != "" && *seedFlag == 0 {
		n, err := strconv.ParseUint(env, 10, 64)
		if err != nil {
			t.Fatalf("SIM_SEED: %v", err)
		}
		*seedFlag = n
	}
	if *seedFlag != 0 {
		problems, story := bubble(t, *seedFlag, None, true)
		t.Log("\n" + strings.Join(story, "\n"))
		for _, p := range problems {
			t.Error(p)
		}
		return
	}
	start := time.Now()
	n := 0
	for seed := *firstFlag; ; seed += *everyFlag {
		if *seedsFlag > 0 && n >= *seedsFlag || *seedsFlag == 0 && time.Since(start) > quickFor {
			break
		}
		n++
		// Printed in place of a subtest's name, since a leaked goroutine panics.
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			problems, _ := bubble(t, seed, None, false)
			for _, p := range problems {
				t.Error(p)
			}
			if len(problems) > 0 {
				t.Logf("again, with its story: go test ./host/internal/sim -run 'TestSim$' -cpu 1 -v -seed=%d", seed)
			}
		})
	}
	t.Logf("%d seeds in %v, %.1f a second", n, time.Since(start).Round(time.Millisecond), float64(n)/time.Since(start).Seconds())
}

// bubble is one run in virtual time.
func bubble(t *testing.T, seed uint64, f Fault, trace bool) (problems, story []string) {
	synctest.Test(t, func(*testing.T) { problems, story = run(seed, f, trace) })
	return problems, story
}

// control reports whether a planted fault shows in a seed that is clean without.
func control(t *testing.T, seed uint64, f Fault) string {
	problems, _ := bubble(t, seed, f, false)
	if len(problems) == 0 {
		return ""
	}
	if clean, _ := bubble(t, seed, None, false); len(clean) > 0 {
		return ""
	}
	return problems[0]
}

// controlSeeds is how many seeds a planted fault has to be caught in.
const controlSeeds = 60

// TestControls plants one fault at a time: a simulation that finds nothing must
// be one that could.
func TestControls(t *testing.T) {
	for f := None + 1; f < faults; f++ {
		t.Run(strings.ReplaceAll(f.String(), " ", "-"), func(t *testing.T) {
			for seed := uint64(1); seed <= controlSeeds; seed++ {
				if caught := control(t, seed, f); caught != "" {
					t.Logf("caught by seed %d: %s", seed, caught)
					return
				}
			}
			t.Errorf("not caught in %d seeds", controlSeeds)
		})
	}
}
