package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/google/go-cmp/cmp"

	"meanwhile/shared/projection"
)

// budget is what the module may cost to download, at brotli 11.
const budget = 560_000

// cacheDir is where the tests keep the compiled module: compiling it under -race
// takes most of a minute.
var cacheDir string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "bridge")
	if err != nil {
		panic(err)
	}
	cacheDir = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

var shared = sync.OnceValues(func() (*Bridge, error) {
	return New(context.Background(), Options{Instances: 2, CacheDir: cacheDir})
})

func open(t testing.TB) *Bridge {
	t.Helper()
	b, err := shared()
	if errors.Is(err, ErrNotBuilt) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const (
	questions = `[{"id":"db","question":"Which store?","options":[{"label":"Postgres"},{"label":"SQLite"}]}]`
	answer    = `{"answers":[{"id":"db","selected":["SQLite"]}]}`
)

func TestChecks(t *testing.T) {
	b := open(t)
	ctx := context.Background()
	for _, tc := range []struct {
		name, questions, answer string
		want                    *projection.Problem // Message is not compared
	}{
		{name: "good ask", questions: questions},
		{name: "good answer", questions: questions, answer: answer},
		{name: "skip", questions: questions, answer: `{"answers":[{"id":"db","selected":[]}]}`},
		{name: "no question", questions: `[]`, want: &projection.Problem{Code: "EMPTY_QUESTIONS", Field: "questions"}},
		{name: "not JSON", questions: `[{]`, want: &projection.Problem{Code: "BAD_QUESTIONS", Field: "questions"}},
		{name: "injection", questions: questions + `,"x":1`, want: &projection.Problem{Code: "BAD_QUESTIONS", Field: "questions"}},
		{name: "name twice", questions: questions, answer: `{"answers":[],"answers":[]}`, want: &projection.Problem{Code: "BAD_ANSWER", Field: "answers"}},
		{name: "label not offered", questions: questions, answer: `{"answers":[{"id":"db","selected":["Oracle"]}]}`,
			want: &projection.Problem{Code: "BAD_ANSWER", Field: "answers[0].selected"}},
		{name: "other member", questions: questions, answer: `{"answers":[],"x":1}`, want: &projection.Problem{Code: "BAD_ANSWER", Field: "answers"}},
		{name: "too long", questions: questions, answer: `{"answers":[{"id":"db","selected":[],"custom":"` + strings.Repeat("x", 1<<20) + `"}]}`,
			want: &projection.Problem{Code: "BAD_ANSWER", Field: "answers"}},
		{name: "memory bomb", questions: questions, answer: `[` + strings.Repeat("0,", 200_000) + `0]`,
			want: &projection.Problem{Code: "BAD_ANSWER", Field: "answers"}},
		{name: "deep", questions: questions, answer: strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
			want: &projection.Problem{Code: "BAD_ANSWER", Field: "answers"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := b.CheckAsk(ctx, []byte(tc.questions))
			if tc.answer != "" {
				got, err = b.CheckAnswer(ctx, []byte(tc.questions), []byte(tc.answer))
			}
			if err != nil {
				t.Fatal(err)
			}
			if got != nil && got.Message == "" {
				t.Error("a problem without a message")
			}
			if got != nil {
				got = &projection.Problem{Code: got.Code, Field: got.Field}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if err := b.Healthy(); err != nil {
				t.Errorf("a caller's fault made the host unhealthy: %v", err)
			}
		})
	}
}

// The largest batch that is lawful fits the module's memory.
func TestLargestLawfulBatch(t *testing.T) {
	b := open(t)
	text := strings.Repeat("q", 9000)
	var qs, as []map[string]any
	for i := range 16 {
		options := []map[string]string{}
		labels := []string{}
		for j := range 64 {
			label := strings.Repeat("l", 150) + string(rune('A'+j%26)) + string(rune('a'+j/26))
			options = append(options, map[string]string{"label": label, "description": strings.Repeat("d", 150)})
			labels = append(labels, label)
		}
		id := string(rune('a' + i))
		qs = append(qs, map[string]any{"id": id, "question": text, "options": options, "multiSelect": true})
		as = append(as, map[string]any{"id": id, "selected": labels, "custom": strings.Repeat("c", 20_000)})
	}
	q, _ := json.Marshal(qs)
	a, _ := json.Marshal(map[string]any{"answers": as})
	if len(q) < 450_000 || len(a) < 450_000 {
		t.Fatalf("the batch is no test of the limit: %d and %d bytes", len(q), len(a))
	}
	for range 3 {
		if p, err := b.CheckAnswer(context.Background(), q, a); err != nil || p != nil {
			t.Fatal(p, err)
		}
	}
}

func TestFold(t *testing.T) {
	b := open(t)
	log := `{"version":1,"id":"s","createdAt":1}` + "\n" +
		`{"seq":0,"time":1,"type":"agent/inbox/spliced","data":{"target":"next-turn","start":0,"inserted":[{"id":"m1","source":{"kind":"user"},"content":[]}]}}` + "\n"
	got, seq, err := b.Fold(context.Background(), "inbox", []byte(log))
	if want := `{"next-step":[],"next-turn":[{"id":"m1","source":{"kind":"user"},"content":[]}]}`; err != nil || seq != 0 || string(got) != want {
		t.Errorf("got %s at %d, %v; want %s", got, seq, err, want)
	}
	var problem *projection.Problem
	_, _, err = b.Fold(context.Background(), "inbox", []byte(log+`{"seq":2,"time":1,"type":"turn/start","data":{"turn":1}}`))
	if !errors.As(err, &problem) || problem.Code != "DAMAGED" {
		t.Errorf("a gap gave %v", err)
	}
}

// A module that runs out of its bounds is the host's fault, is tried twice, and
// does not poison what comes after.
func TestFailure(t *testing.T) {
	b := open(t)
	small, err := New(context.Background(), Options{Module: b.Bytes(), CacheDir: cacheDir, Instances: 1, Pages: 75})
	if err != nil {
		t.Fatal(err)
	}
	defer small.Close(context.Background())
	log := []byte(`{"version":1,"id":"s","createdAt":1,"x":[` + strings.Repeat("0,", 500_000) + `0]}`)
	var fault *Error
	if _, _, err := small.Fold(context.Background(), "inbox", log); !errors.As(err, &fault) {
		t.Fatalf("got %v, want an *Error", err)
	}
	if small.Healthy() == nil {
		t.Error("healthy after a failure")
	}
	if p, err := small.CheckAnswer(context.Background(), []byte(questions), []byte(answer)); p != nil || err != nil {
		t.Fatal(p, err)
	}
	if err := small.Healthy(); err != nil {
		t.Error(err)
	}
}

func TestPoolIsShared(t *testing.T) {
	b := open(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if p, err := b.CheckAnswer(context.Background(), []byte(questions), []byte(answer)); p != nil || err != nil {
					t.Error(p, err)
				}
			}
		})
	}
	wg.Wait()
	for range cap(b.slots) {
		i := <-b.slots
		defer func() { b.slots <- i }()
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := b.CheckAsk(ctx, []byte(questions)); !errors.Is(err, context.Canceled) {
		t.Errorf("with every instance taken got %v", err)
	}
}

func TestCacheDir(t *testing.T) {
	b := open(t)
	if kept, err := os.ReadDir(cacheDir); err != nil || len(kept) == 0 {
		t.Fatalf("nothing was kept: %v, %v", kept, err)
	}
	for range 2 { // from what the first one left
		c, err := New(context.Background(), Options{Module: b.Bytes(), CacheDir: cacheDir, Instances: 1})
		if err != nil {
			t.Fatal(err)
		}
		if p, err := c.CheckAsk(context.Background(), []byte(questions)); p != nil || err != nil {
			t.Error(p, err)
		}
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

func TestDownloadBudget(t *testing.T) {
	if testing.Short() {
		t.Skip("brotli 11 takes ten seconds")
	}
	var out bytes.Buffer
	w := brotli.NewWriterLevel(&out, brotli.BestCompression)
	w.Write(open(t).Bytes())
	w.Close()
	t.Logf("%d bytes at brotli 11, of %d", out.Len(), budget)
	if out.Len() > budget {
		t.Errorf("the module costs %d bytes at brotli 11, over its budget of %d", out.Len(), budget)
	}
}

// What the module may not link: each costs more than all of its own code.
func TestModuleLinksLittle(t *testing.T) {
	list := exec.Command("go", "list", "-deps", "./wasm/client")
	list.Dir = filepath.Join("..", "..")
	list.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range strings.Fields(string(out)) {
		switch pkg {
		case "fmt", "reflect", "os", "encoding/json", "time", "context", "net":
			t.Errorf("the module links %s", pkg)
		}
	}
}

func TestModuleRebuildsToTheSameBytes(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the module")
	}
	b := open(t)
	makefile, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	_, command, ok := strings.Cut(string(makefile), "\tGOOS=wasip1 GOARCH=wasm go build ")
	if !ok {
		t.Fatal("the Makefile does not build the module")
	}
	command, _, _ = strings.Cut(command, "\n")
	out := filepath.Join(t.TempDir(), "client.wasm")
	build := exec.Command("sh", "-c", "go build "+strings.ReplaceAll(command, "$@", out))
	build.Dir = filepath.Join("..", "..")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if msg, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, msg)
	}
	again, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(again, b.Bytes()) {
		t.Error("the embedded module is not what the sources build: run make build")
	}
}

func BenchmarkCheckAnswer(b *testing.B) {
	br := open(b)
	for b.Loop() {
		if p, err := br.CheckAnswer(context.Background(), []byte(questions), []byte(answer)); p != nil || err != nil {
			b.Fatal(p, err)
		}
	}
}

func BenchmarkFold(b *testing.B) {
	br := open(b)
	var log strings.Builder
	log.WriteString(`{"version":1,"id":"s","createdAt":1}` + "\n")
	for i := range 1000 {
		log.WriteString(`{"seq":` + string(json.RawMessage(jsonInt(i))) + `,"time":1,"type":"turn/start","data":{"turn":1}}` + "\n")
	}
	b.SetBytes(int64(log.Len()))
	for b.Loop() {
		if _, _, err := br.Fold(context.Background(), "inbox", []byte(log.String())); err != nil {
			b.Fatal(err)
		}
	}
}

func jsonInt(i int) string { b, _ := json.Marshal(i); return string(b) }
