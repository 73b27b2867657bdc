package crash

import (
	"context"
	"flag"
	"os"
	"testing"
	"time"

	"meanwhile/host/cli"
)

var (
	kills  = flag.Int("kills", 4, "how often TestKill kills the host")
	seed   = flag.Uint64("seed", 0, "of the instants and choices; 0 = drawn")
	binary = flag.String("binary", "", "the program to kill; none = this test binary in its place")
)

// asHost makes this binary the program.
const asHost = "MEANWHILE_CRASH_HOST"

// rotateAfter is how many kills one data directory lives through: each check
// reads all of it.
const rotateAfter = 20

func TestMain(m *testing.M) {
	if os.Getenv(asHost) != "" {
		os.Exit(cli.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func TestKill(t *testing.T) {
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", *seed)
	var total tally
	for left := *kills; left > 0 && !t.Failed(); left -= rotateAfter {
		r := newRun(t, *seed+uint64(left))
		for range min(left, rotateAfter) {
			r.round()
			total.kills++
			if t.Failed() {
				break
			}
		}
		r.finish()
		total.add(r.led.tally())
	}
	t.Logf("%+v", total)
	if !t.Failed() && (total.accepted == 0 || total.answered == 0 || total.prompts == 0) {
		t.Error("the load did not reach what is checked: raise the number of kills")
	}
}
