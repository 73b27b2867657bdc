package loop

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the transcripts under testdata")

// A transcript is one input a line; the effects it has follow, each after "> ".
// Lines that begin with # say what the case is about.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/machine/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(want))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("transcript (-want +got):\n%s", diff)
			}
		})
	}
}

func play(t *testing.T, script string) string {
	t.Helper()
	m := NewMachine(Bounds{Steps: 3, Calls: 4, Parallel: 2})
	var out strings.Builder
	for line := range strings.Lines(script) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, ">") || strings.HasPrefix(line, "=") {
			continue
		}
		fmt.Fprintln(&out, line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		for _, e := range m.Step(parseInput(t, line)) {
			fmt.Fprintln(&out, "> "+effectString(e))
		}
		fmt.Fprintln(&out, "= "+m.Phase().String())
	}
	return out.String()
}

func parseInput(t *testing.T, line string) Input {
	t.Helper()
	f := strings.Fields(line)
	num := func(i int) int64 {
		n, err := strconv.ParseInt(f[i], 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		return n
	}
	switch f[0] {
	case "start":
		return Start{}
	case "opened":
		return Opened{Turn: num(1), Step: num(2)}
	case "not-opened":
		return NotOpened{}
	case "ended":
		return Ended{}
	case "cancel":
		return Cancel{Reason: strings.Join(f[1:], " ")}
	case "overdue":
		return Overdue{Turn: num(1), Step: num(2)}
	case "done":
		return Done{ID: f[1], Outcome: Outcome{Text: strings.Join(f[2:], " ")}}
	case "replied":
		r := Replied{}
		switch f[1] {
		case "length":
			r.End = EndLength
		case "failed":
			r.End, r.Reason = EndFailed, Reason{Kind: "error", Message: "the provider said no"}
		}
		for _, w := range f[2:] {
			if w == "text" {
				r.Text = true
			} else {
				r.Calls = append(r.Calls, Call{ID: w, Name: "tool"})
			}
		}
		return r
	}
	t.Fatalf("unknown input %q", line)
	return nil
}

func effectString(e Effect) string {
	switch e := e.(type) {
	case AskModel:
		return fmt.Sprintf("ask-model %d.%d", e.Turn, e.Step)
	case RecordReply:
		return fmt.Sprintf("record-reply whole=%t interrupted=%t", e.Whole, e.Interrupted)
	case RunCall:
		return "run " + e.Call.ID
	case RecordResult:
		return strings.TrimSpace(fmt.Sprintf("result %s %s %s", e.Call.ID, e.Outcome.Code, e.Outcome.Text))
	case StopCalls:
		return "stop-calls " + e.Reason
	case BoundStep:
		return fmt.Sprintf("bound-step more=%t last=%t", e.More, e.Last)
	case EndTurn:
		return strings.TrimSpace(fmt.Sprintf("end-turn %s %s", e.Reason.Kind, e.Reason.Message))
	default:
		return strings.TrimPrefix(fmt.Sprintf("%T", e), "loop.")
	}
}

func TestImpossibleInputPanics(t *testing.T) {
	for _, tc := range []struct {
		name   string
		before []Input
		in     Input
	}{
		{"a turn inside a turn", []Input{Start{}}, Start{}},
		{"a reply nobody asked for", nil, Replied{}},
		{"opened in the middle of a model call", []Input{Start{}, Opened{1, 1}}, Opened{1, 2}},
		{"an end of no turn", nil, Ended{}},
		{"an end while tools run", []Input{Start{}, Opened{1, 1}, Replied{Calls: []Call{{ID: "a"}}}}, Ended{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := NewMachine(Bounds{})
			for _, in := range tc.before {
				m.Step(in)
			}
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, "in phase") {
					t.Errorf("recover() = %q, want a panic that names the input and the phase", got)
				}
			}()
			m.Step(tc.in)
		})
	}
}

// Whatever comes in whatever order, a call that was accepted gets exactly one
// result, and a cancelled turn reaches its end.
func TestEveryCallIsAnsweredOnce(t *testing.T) {
	for seed := range 2000 {
		rnd := newRand(uint64(seed))
		m := NewMachine(Bounds{Steps: 4, Calls: 3, Parallel: 2})
		running := map[string]bool{}
		answered := map[string]int{}
		accepted := map[string]bool{}
		n := 0
		var queue []Effect
		step := func(in Input) {
			for _, e := range m.Step(in) {
				queue = append(queue, e)
				switch e := e.(type) {
				case RunCall:
					running[e.Call.ID] = true
				case RecordResult:
					answered[e.Call.ID]++
					delete(running, e.Call.ID)
				}
			}
		}
		step(Start{})
		var turn, stepNo int64 = 1, 0
		for i := 0; m.Phase() != Idle; i++ {
			if i > 500 {
				t.Fatalf("seed %d: the turn does not end, phase %v", seed, m.Phase())
			}
			if rnd.IntN(12) == 0 {
				step(Cancel{Reason: "stop"})
			}
			if rnd.IntN(12) == 0 {
				step(Overdue{turn, stepNo})
			}
			switch m.Phase() {
			case Opening:
				stepNo++
				step(Opened{turn, stepNo})
			case Asking:
				r := Replied{End: End(rnd.IntN(3)), Text: rnd.IntN(2) == 0, Reason: Reason{Kind: "error"}}
				if rnd.IntN(2) == 0 {
					r.End = EndStop
				}
				for range rnd.IntN(6) {
					n++
					r.Calls = append(r.Calls, Call{ID: fmt.Sprint("c", n)})
				}
				if r.End == EndStop {
					for _, c := range r.Calls {
						accepted[c.ID] = true
					}
				}
				step(r)
			case Working:
				for id := range running {
					step(Done{ID: id})
					break
				}
			case Bounding:
				if b := queue[len(queue)-1].(BoundStep); b.More || !b.Last && rnd.IntN(3) == 0 {
					stepNo++
					step(Opened{turn, stepNo})
				} else {
					step(Ended{})
				}
			case Closing:
				step(Ended{})
			}
		}
		for id := range accepted {
			if answered[id] != 1 {
				t.Fatalf("seed %d: call %s has %d results, want 1", seed, id, answered[id])
			}
		}
		if len(answered) != len(accepted) {
			t.Fatalf("seed %d: %d results for %d calls", seed, len(answered), len(accepted))
		}
	}
}
