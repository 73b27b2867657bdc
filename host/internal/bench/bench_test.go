package bench

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"meanwhile/host/cli"
)

var (
	all      = flag.Bool("bench-all", false, "measure; without it TestBench does one small round of everything")
	only     = flag.String("only", "", "parts to run, comma separated; empty: all")
	profile  = flag.String("profile", "", "directory for CPU profiles of the host")
	chromium = flag.Bool("chromium", false, "measure in Chromium too (needs web/node_modules and CHROMIUM)")
)

const (
	asHost     = "MEANWHILE_BENCH_HOST"
	profileVar = "MEANWHILE_BENCH_PROFILE"
	loadFile   = "/proc/loadavg"
)

func TestMain(m *testing.M) {
	if os.Getenv(asHost) != "" {
		tidy := make(chan os.Signal, 1)
		signal.Notify(tidy, syscall.SIGUSR1)
		go func() {
			for range tidy {
				debug.FreeOSMemory()
			}
		}()
		os.Exit(host(os.Getenv(profileVar)))
	}
	os.Exit(m.Run())
}

// host is the program, profiled if there is a file for it.
func host(profile string) int {
	if profile != "" {
		f, err := os.Create(profile)
		if err == nil {
			err = pprof.StartCPUProfile(f)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "profile:", err)
			return 1
		}
		defer f.Close()
		defer pprof.StopCPUProfile()
	}
	return cli.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}

// size is how much of everything a run does.
type size struct {
	floor     int           // round trips and puts
	asks      int           // of W1
	long      time.Duration // of W2
	sessions  int           // of W3 and W4
	each      []int         // asks of each session, one round for each number
	late      int           // asks of each of the 64 agents of W5
	events    int           // of the folded log
	checks    int           // answers checked
	starts    int           // of the module
	answerers []int         // people's connections of W2
}

var (
	full  = size{2000, 2000, 15 * time.Second, 1000, []int{10, 100}, 50, 4000, 20_000, 5, []int{1, 8, 64}}
	small = size{50, 20, 200 * time.Millisecond, 8, []int{3}, 2, 200, 100, 1, []int{1, 2}}
)

// bench is one run.
type bench struct {
	t *testing.T
	size
	rtt, put time.Duration // floors, median
}

func TestBench(t *testing.T) {
	b := &bench{t: t, size: small}
	if *all {
		b.size = full
	}
	b.line("machine", "%d processors, %s, load %s", runtime.NumCPU(), runtime.Version(), load())
	b.floors()
	for _, part := range []struct {
		name string
		run  func()
	}{
		{"w1", b.oneAtATime}, {"w2", b.crowd}, {"w3", b.open}, {"w5", b.expire},
		{"module", b.module}, {"browser", b.browser},
	} {
		if *only == "" || slices.Contains(strings.Split(*only, ","), part.name) {
			part.run()
		}
	}
	b.line("load", "%s at the end", load())
}

// line prints one figure.
func (b *bench) line(name, format string, args ...any) {
	fmt.Printf("%-22s %s\n", name, fmt.Sprintf(format, args...))
}

func load() string {
	text, err := os.ReadFile(loadFile)
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(text))[:3], " ")
}

// dir is a data directory's parent. Not t.TempDir: the name of a socket has
// little room.
func (b *bench) dir() string {
	b.t.Helper()
	dir, err := os.MkdirTemp("", "mw")
	b.must(err)
	b.t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) profileFor(part string) string {
	if *profile == "" {
		return ""
	}
	return filepath.Join(*profile, part+".pprof")
}

// times is a set of durations.
type times []time.Duration

// at returns a percentile.
func (d times) at(p int) time.Duration {
	if len(d) == 0 {
		return 0
	}
	sorted := slices.Clone(d)
	slices.Sort(sorted)
	return sorted[min(len(sorted)-1, len(sorted)*p/100)].Round(time.Microsecond)
}

func perSecond(n int, took time.Duration) float64 { return float64(n) / took.Seconds() }
