package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The command says of every vector what the projection's own tests say.
func TestReplayVectors(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "shared", "projection", "testdata", "vectors.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name   string
		Header json.RawMessage
		Events []json.RawMessage
		Want   any
	}
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 10 {
		t.Fatalf("only %d vectors", len(cases))
	}
	for _, tc := range cases {
		t.Run(tc.Name, func(t *testing.T) {
			var log, out, complaint bytes.Buffer
			for _, doc := range append([]json.RawMessage{tc.Header}, tc.Events...) {
				if err := json.Compact(&log, doc); err != nil {
					t.Fatal(err)
				}
				log.WriteByte('\n')
			}
			if code := Main(context.Background(), []string{"replay", "-"}, &log, &out, &complaint); code != 0 {
				t.Fatalf("exit code %d: %s", code, &complaint)
			}
			var got any
			if err := json.Unmarshal(out.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.Want, got); diff != "" {
				t.Errorf("view (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReplayLongLine(t *testing.T) {
	log := `{"version":1,"id":"s","createdAt":1}` + "\n" + strings.Repeat("x", maxLine+1)
	var out, complaint bytes.Buffer
	if code := Main(context.Background(), []string{"replay", "-"}, strings.NewReader(log), &out, &complaint); code != exitFailed || !strings.Contains(complaint.String(), "-:2: the line is over") {
		t.Errorf("exit code %d: %s", code, &complaint)
	}
}

func TestClean(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"plain", "Which store? é 数", "Which store? é 数"},
		{"colour", "a\x1b[31mb\x1b[0m", "a[31mb[0m"},
		{"link", "\x1b]8;;http://evil\x07x\x1b]8;;\x07", "]8;;http://evilx]8;;"},
		{"lines", "a\nb\r\tc", "a b  c"},
		{"backspace and delete", "yes\b\b\bno\x7f", "yesno"},
		{"direction", "a\u202eb\u2066c\u200f", "abc"},
		{"invisible", "a\u200bb\ufeffc", "abc"},
		{"c1", "a\u009b31mb", "a31mb"},
		{"broken bytes", "a\xffb", "a�b"},
	} {
		if got := clean(tc.text); got != tc.want {
			t.Errorf("%s: clean(%q) = %q, want %q", tc.name, tc.text, got, tc.want)
		}
	}
}
