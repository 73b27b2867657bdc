package paritytest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"meanwhile/wasm/bridge"
	"meanwhile/wasm/client/abi"
)

var update = flag.Bool("update", false, "write the expected files")

type exchange struct {
	Call string `json:"call"`
	Wall int64  `json:"wall,omitempty"`
	Mono int64  `json:"mono,omitempty"`
	In   string `json:"in"`
	Out  string `json:"out"`
}

func names(t *testing.T) []string {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	var out []string
	for _, f := range files {
		if name := strings.TrimSuffix(filepath.Base(f), ".json"); !strings.HasSuffix(name, ".expected") {
			out = append(out, name)
		}
	}
	return out
}

// script is the calls of a transcript, without answers.
func script(t *testing.T, name string) []exchange {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	if name == "projection" {
		return vectors(t, raw)
	}
	var lines [][4]json.RawMessage
	if err := json.Unmarshal(raw, &lines); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var calls []exchange
	for _, l := range lines {
		var e exchange
		for i, into := range []any{&e.Call, &e.Wall, &e.Mono} {
			if err := json.Unmarshal(l[i], into); err != nil {
				t.Fatalf("%s: %s: %v", name, l[i], err)
			}
		}
		e.In = compact(t, l[3])
		if e.Call == "fold" {
			var docs []json.RawMessage
			if err := json.Unmarshal(l[3], &docs); err != nil {
				t.Fatal(err)
			}
			e.In = ""
			for _, d := range docs {
				e.In += compact(t, d) + "\n"
			}
		}
		calls = append(calls, e)
	}
	return calls
}

func compact(t *testing.T, doc json.RawMessage) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, doc); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

type vector struct {
	Name   string
	Header json.RawMessage
	Events []json.RawMessage
	Want   any
}

func readVectors(t *testing.T, raw []byte) (vs []vector) {
	t.Helper()
	if err := json.Unmarshal(raw, &vs); err != nil {
		t.Fatal(err)
	}
	return vs
}

func vectors(t *testing.T, raw []byte) (calls []exchange) {
	for _, v := range readVectors(t, raw) {
		in := `{"view":"userQuestions"}` + "\n" + compact(t, v.Header) + "\n"
		for _, e := range v.Events {
			in += compact(t, e) + "\n"
		}
		calls = append(calls, exchange{Call: "fold", In: in})
	}
	return calls
}

func native(m *abi.Module, e exchange) string {
	n := copy(m.Buffer(len(e.In)), e.In)
	switch e.Call {
	case "step":
		return string(m.Step(e.Wall, e.Mono, n))
	case "view":
		return string(m.View(e.Wall, e.Mono, n))
	case "check":
		return string(m.Check(n))
	}
	return string(m.Fold(n))
}

func expected(t *testing.T, name string) []exchange {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + name + ".expected.json")
	if err != nil {
		t.Fatal(err, "(run with -update)")
	}
	var list []exchange
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

func TestNative(t *testing.T) {
	for _, name := range names(t) {
		t.Run(name, func(t *testing.T) {
			var m abi.Module
			got := script(t, name)
			for i := range got {
				got[i].Out = native(&m, got[i])
				if strings.HasPrefix(got[i].Out, `{"error":{"code":"TRAP"`) {
					t.Fatalf("call %d: %s", i, got[i].Out)
				}
			}
			if *update {
				var b bytes.Buffer
				enc := json.NewEncoder(&b)
				enc.SetEscapeHTML(false)
				enc.SetIndent("", " ")
				if err := enc.Encode(got); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile("testdata/"+name+".expected.json", b.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(expected(t, name), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestUnderWazero(t *testing.T) {
	ctx := context.Background()
	b, err := bridge.New(ctx, bridge.Options{Instances: 1})
	if errors.Is(err, bridge.ErrNotBuilt) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close(ctx)
	for _, name := range names(t) {
		t.Run(name, func(t *testing.T) {
			g, err := b.Guest(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close(ctx)
			for i, e := range expected(t, name) {
				got, err := g.Call(e.Call, e.Wall, e.Mono, []byte(e.In))
				if err != nil {
					t.Fatalf("call %d: %v", i, err)
				}
				if string(got) != e.Out {
					t.Fatalf("call %d, %s\ngot  %s\nwant %s", i, e.In, got, e.Out)
				}
			}
		})
	}
}

// The vectors say what the fold must give; the golden alone would only say that
// it has not changed.
func TestVectors(t *testing.T) {
	raw, err := os.ReadFile("testdata/projection.json")
	if err != nil {
		t.Fatal(err)
	}
	answers := expected(t, "projection")
	for i, v := range readVectors(t, raw) {
		var got struct{ View any }
		if err := json.Unmarshal([]byte(answers[i].Out), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(v.Want, got.View); diff != "" {
			t.Errorf("%s: -want +got:\n%s", v.Name, diff)
		}
	}
}
