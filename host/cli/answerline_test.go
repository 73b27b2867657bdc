package cli

import (
	"bufio"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"meanwhile/shared/projection"
)

func question(multi bool, labels ...string) projection.Question {
	q := projection.Question{ID: "q", Question: "Which?", MultiSelect: &multi}
	for _, l := range labels {
		q.Options = append(q.Options, projection.Option{Label: l})
	}
	return q
}

func TestParseAnswer(t *testing.T) {
	own := func(text string) *string { return &text }
	for _, tc := range []struct {
		name     string
		q        projection.Question
		line     string
		selected []string
		custom   *string
		bad      bool
	}{
		{name: "a number", q: question(false, "A", "B"), line: "2", selected: []string{"B"}},
		{name: "an exact label", q: question(false, "A", "B"), line: "B", selected: []string{"B"}},
		{name: "a label with a comma", q: question(true, "A, B", "A"), line: "A, B", selected: []string{"A, B"}},
		{name: "a label that is a number", q: question(false, "2", "1"), line: "2", selected: []string{"2"}},
		{name: "a label that looks like words of one's own", q: question(false, "=x", "B"), line: "=x", selected: []string{"=x"}},
		{name: "own words", q: question(false, "A"), line: "= neither 1 nor 2", custom: own("neither 1 nor 2")},
		{name: "own words with the sign in them", q: question(false, "A"), line: "=a=b", custom: own("a=b")},
		{name: "several", q: question(true, "A", "B", "C"), line: "3 1,3", selected: []string{"C", "A"}},
		{name: "several and own words", q: question(true, "A", "B"), line: "1 2 = and more", selected: []string{"A", "B"}, custom: own("and more")},
		{name: "skipped", q: question(false, "A"), line: "/skip"},
		{name: "skipped text", q: question(false), line: " /skip "},
		{name: "digits are text without options", q: question(false), line: "12", custom: own("12")},
		{name: "text", q: question(false), line: " = as it is ", custom: own("= as it is")},
		{name: "empty is no answer", q: question(false, "A"), line: "", bad: true},
		{name: "white space is no answer", q: question(false), line: " \t ", bad: true},
		{name: "a part of a label", q: question(false, "Apple"), line: "App", bad: true},
		{name: "no such number", q: question(false, "A"), line: "2", bad: true},
		{name: "zero", q: question(false, "A"), line: "0", bad: true},
		{name: "two where one may be", q: question(false, "A", "B"), line: "1 2", bad: true},
		{name: "a choice and words where one may be", q: question(false, "A"), line: "1 = x", bad: true},
		{name: "no words", q: question(true, "A"), line: "1 = ", bad: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := parseAnswer(tc.q, tc.line)
			if tc.bad {
				if err == nil {
					t.Errorf("taken as %+v", got)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := projection.Answer{ID: "q", Selected: append([]string{}, tc.selected...), Custom: tc.custom}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestTypedText(t *testing.T) {
	for _, tc := range []struct{ name, line, want string }{
		{"arrows", "a\x1b[D\x1b[1;5Cb\x1bOPc", "abc"},
		{"paste marks", "\x1b[200~pasted\x1b[201~", "pasted"},
		{"controls", "a\x00\x07\x08b\r\n", "ab"},
		{"a lone escape", "a\x1bxb", "ab"},
		{"broken bytes", "a\xff\xfeb", "ab"},
		{"other scripts stay whole", "数据库 👨\u200d👩 می\u200cخواهم", "数据库 👨\u200d👩 می\u200cخواهم"},
	} {
		if got := typedText(tc.line); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestReadLineHasALimit(t *testing.T) {
	in := bufio.NewReaderSize(strings.NewReader(strings.Repeat("x", inputMax+1)), inputMax)
	if got, err := readLine(in); err == nil {
		t.Errorf("read %d bytes", len(got))
	}
	in = bufio.NewReaderSize(strings.NewReader("one\ntwo"), inputMax)
	for _, want := range []string{"one", "two"} {
		if got, err := readLine(in); got != want || err != nil {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	if _, err := readLine(in); err == nil {
		t.Error("the end is a line")
	}
}

// What is printed as JSON is the same document, and moves no terminal.
func TestPrintSafe(t *testing.T) {
	text := "a\x1b[31m\u009b31m\u202eb\u2066\u200d\U000e0041ü数👍\n<&>"
	var out strings.Builder
	if err := printSafe(&out, map[string]string{"x": text}); err != nil {
		t.Fatal(err)
	}
	for _, c := range strings.TrimSuffix(out.String(), "\n") {
		if c < ' ' || c == 0x9b || c == 0x202e || c == 0x2066 || c == 0x200d || c == 0xe0041 {
			t.Errorf("%U reached the terminal", c)
		}
	}
	var back map[string]string
	if err := json.Unmarshal([]byte(out.String()), &back); err != nil || back["x"] != text {
		t.Errorf("got %q, %v, want %q", back["x"], err, text)
	}
	if !strings.Contains(out.String(), "ü数👍") {
		t.Errorf("letters became escapes: %s", out.String())
	}
}

func TestCleanText(t *testing.T) {
	const evil = "a\x1b]0;title\x07\u202eb\tc\nd\u009b2J\r"
	if got, want := clean(evil), "a]0;titleb c d2J "; got != want {
		t.Errorf("clean: got %q, want %q", got, want)
	}
	if got, want := cleanLines(evil), "a]0;titleb c\nd2J "; got != want {
		t.Errorf("cleanLines: got %q, want %q", got, want)
	}
	if got, want := cleanText(evil), "a]0;titleb\tc\nd2J"; got != want {
		t.Errorf("cleanText: got %q, want %q", got, want)
	}
}

func TestParseTimeout(t *testing.T) {
	for _, tc := range []struct {
		text string
		want int64 // 0: refused
	}{
		{"90", 90}, {"2m", 120}, {"1s", 1}, {"-1", -1}, {"2147483", 2147483}, {"1h30m", 5400},
		{"0", 0}, {"0s", 0}, {"", 0}, {"1.5", 0}, {"1500ms", 0}, {"2147484", 0}, {"1e3", 0}, {"-2", 0}, {"-1s", 0}, {"\"120\"", 0}, {"never", 0},
	} {
		got, err := parseTimeout(tc.text)
		if got != tc.want || (err == nil) != (tc.want != 0) {
			t.Errorf("%q: got %d, %v, want %d", tc.text, got, err, tc.want)
		}
	}
}
