package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"meanwhile/shared/event"
	"meanwhile/shared/projection"
	"meanwhile/wasm/bridge"
)

// foldFor is how long each fold is repeated.
const foldFor = time.Second

// log is a session in JSON lines: asks, most answered, some late.
func (b *bench) log() []byte {
	header := event.Header{Version: event.Version, ID: "bench", CreatedAt: 1}
	out := append(event.AppendHeader(nil, header), '\n')
	add := func(seq int, d event.Draft) {
		out = append(event.AppendEvent(out, event.Event{Seq: int64(seq), Time: 1, Type: d.Type, Data: d.Data}), '\n')
	}
	offered := []event.ToolSpec{{Name: "ask_user_question", Parameters: []byte(`{"properties":{"timeout":{}}}`)}}
	add(0, event.TurnStart{Turn: 1}.Draft())
	add(1, event.RequestHeader{Tools: offered, Reason: "initial"}.Draft())
	for i := 2; i < b.events; i += 2 {
		call := fmt.Sprint("call-", i)
		text := `{"answers":[{"id":"q","selected":["A"]}]}`
		if i%10 == 0 {
			text = fmt.Sprintf(`{"pending":true,"callId":%q,"message":"later"}`, call)
		}
		add(i, event.ToolCall{Turn: 1, Step: 1, CallID: call, Name: "ask_user_question",
			Arguments: `{"questions":[{"id":"q","question":"Which of the two should be taken?","options":[{"label":"A"},{"label":"B"}]}]}`}.Draft())
		add(i+1, event.ToolResult{Turn: 1, Step: 1, MessageID: fmt.Sprint("m-", i), CallID: call, Text: text}.Draft())
	}
	return out
}

// module measures the client module under wazero beside the same code native.
func (b *bench) module() {
	b.t.Helper()
	log := b.log()
	events := bytes.Count(log, []byte("\n")) - 1
	native := b.rate(events, func() error { return foldNative(log) })
	b.line("fold native", "%.0f events/s", native)

	cache := b.dir()
	var cold, warm times
	for range b.starts {
		empty := b.dir()
		cold = append(cold, b.startModule(empty))
		b.startModule(cache)
		warm = append(warm, b.startModule(cache))
	}
	m, err := bridge.New(b.t.Context(), bridge.Options{CacheDir: cache})
	b.must(err)
	defer m.Close(b.t.Context())
	hosted := b.rate(events, func() error {
		_, _, err := m.Fold(b.t.Context(), "userQuestions", log)
		return err
	})
	b.line("fold wazero", "%.0f events/s = 1/%.1f of native; aim 1/12", hosted, native/hosted)

	questions := []byte(`[{"id":"q","question":"Which of the two should be taken?","options":[{"label":"The first"},{"label":"The second"}]}]`)
	answer, err := json.Marshal(answers)
	b.must(err)
	qs, problem := projection.QuestionsOf(`{"questions":` + string(questions) + `}`)
	if problem != nil {
		b.t.Fatal(problem)
	}
	own := b.rate(1, func() error {
		if p := projection.CheckAsk(qs, true); p != nil {
			return fmt.Errorf("%s: %s", p.Field, p.Message)
		}
		return nil
	})
	one := b.rate(1, func() error {
		p, err := m.CheckAnswer(b.t.Context(), questions, answer)
		if p != nil {
			return fmt.Errorf("%s: %s", p.Field, p.Message)
		}
		return err
	})
	var all sync.WaitGroup
	begin := time.Now()
	for range runtime.NumCPU() {
		all.Go(func() {
			for range b.checks {
				if p, err := m.CheckAnswer(b.t.Context(), questions, answer); p != nil || err != nil {
					b.t.Error(p, err)
					return
				}
			}
		})
	}
	all.Wait()
	many := perSecond(runtime.NumCPU()*b.checks, time.Since(begin))
	b.line("validations", "%.0f answers/s on one instance, %.0f/s on %d (the bare rules native %.0f/s)", one, many, runtime.NumCPU(), own)
	b.line("module start", "wazero %v cold, %v with the cache of compiled code; %d bytes", cold.at(50), warm.at(50), len(m.Bytes()))
}

func (b *bench) startModule(cache string) time.Duration {
	b.t.Helper()
	start := time.Now()
	m, err := bridge.New(b.t.Context(), bridge.Options{CacheDir: cache})
	b.must(err)
	took := time.Since(start)
	b.must(m.Close(b.t.Context()))
	return took
}

// rate repeats f, which does n of something, for a while.
func (b *bench) rate(n int, f func() error) float64 {
	b.t.Helper()
	length := foldFor
	if !*all {
		length = 10 * time.Millisecond
	}
	b.must(f()) // warm
	total, begin := 0, time.Now()
	for time.Since(begin) < length {
		b.must(f())
		total += n
	}
	return perSecond(total, time.Since(begin))
}

// foldNative is what the module's fold does: parse each line, fold it.
func foldNative(log []byte) error {
	first, rest, _ := bytes.Cut(log, []byte("\n"))
	h, err := event.ParseHeader(first)
	if err != nil {
		return err
	}
	s := projection.NewSet(h)
	for line := range bytes.Lines(rest) {
		e, err := event.ParseEvent(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			return err
		}
		if err := s.Apply(e, nil); err != nil {
			return err
		}
	}
	return nil
}

// browser has the page's own loader fold the same log in Chromium, and looks at
// how long module and page take to start.
func (b *bench) browser() {
	b.t.Helper()
	if !*chromium {
		b.line("Chromium", "not measured: run make bench, or -chromium")
		return
	}
	dir := b.dir()
	in, out := filepath.Join(dir, "log.jsonl"), filepath.Join(dir, "out.json")
	log := b.log()
	b.must(os.WriteFile(in, log, 0o600))
	native := b.rate(bytes.Count(log, []byte("\n"))-1, func() error { return foldNative(log) })
	cmd := exec.Command("npx", "vitest", "run", "--config", "e2e/vitest.config.ts", "bench")
	cmd.Dir = filepath.Join("..", "..", "..", "web")
	cmd.Env = append(os.Environ(), "BENCH_LOG="+in, "BENCH_OUT="+out)
	if text, err := cmd.CombinedOutput(); err != nil {
		b.t.Errorf("%v\n%s", err, text)
		return
	}
	raw, err := os.ReadFile(out)
	b.must(err)
	var got struct{ EventsPerSecond, ChecksPerSecond, ModuleMs, PageMs float64 }
	b.must(json.Unmarshal(raw, &got))
	b.line("fold Chromium", "%.0f events/s = 1/%.1f of native; aim 1/12; %.0f validations/s", got.EventsPerSecond, native/got.EventsPerSecond, got.ChecksPerSecond)
	b.line("page start", "module %.0f ms from bytes to ready, page %.0f ms from the address to its list", got.ModuleMs, got.PageMs)
}
