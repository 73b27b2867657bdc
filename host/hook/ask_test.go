package hook

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The same questions while the first ask is open: no second card.
func TestAskingAgainMeetsTheOpenAsk(t *testing.T) {
	notes := t.TempDir()
	first := newScript(t, map[string]any{"userQuestions/ask": `{"status":"pending","callId":"c1","remainingMs":0,"shown":false}`})
	out, trouble := serve(t, "claude-code", asksIt, notes, first)
	if trouble != nil || !strings.Contains(out, "callId c1") || !strings.Contains(out, "No screen has shown") {
		t.Fatalf("wrote %q, trouble %v", out, trouble)
	}
	if got := first.params["userQuestions/ask"]["requestId"]; got != "t1" {
		t.Errorf("requestId %v, want t1", got)
	}
	retried := strings.Replace(asksIt, `"t1"`, `"t2"`, 1)
	again := newScript(t, map[string]any{"userQuestions/await": `{"status":"pending","callId":"c1","remainingMs":0}`})
	if out, _ := serve(t, "claude-code", retried, notes, again); !strings.Contains(out, "open already") || !strings.Contains(out, "callId c1") {
		t.Errorf("wrote %q", out)
	}
	answered := newScript(t, map[string]any{"userQuestions/await": `{"status":"answered","callId":"c1","messageId":"m9","answers":[{"id":"q1","selected":["B"]}]}`})
	if out, _ := serve(t, "claude-code", retried, notes, answered); !strings.Contains(out, `"answers":{"Which?":"B"}`) {
		t.Errorf("wrote %q", out)
	}
	fresh := newScript(t, map[string]any{"userQuestions/ask": `{"status":"pending","callId":"c2","remainingMs":0}`})
	if out, _ := serve(t, "claude-code", retried, notes, fresh); !strings.Contains(out, "callId c2") {
		t.Errorf("once it is answered a new ask is a new one: wrote %q", out)
	}
	if got := fresh.params["inbox/admit"]["messageIds"]; !cmp.Equal(got, []any{"m9"}) {
		t.Errorf("acknowledged %v, want m9", got)
	}
}

// How an ask can end otherwise. Faults of the host leave the agent's own dialog.
func TestAskEnds(t *testing.T) {
	for _, tc := range []struct {
		name, code, field, message string
		want                       string // "" is silence
	}{
		{"over a limit", "BAD_QUESTIONS", "questions[0].options[1].label", "is over 400 characters", "questions[0].options[1].label"},
		{"closed", "ASK_CANCELLED", "", "the user closed the question", "ASK_CANCELLED"},
		{"withdrawn", "ASK_WITHDRAWN", "", "withdrawn", "ASK_WITHDRAWN"},
		{"handed back", "NO_PROVIDER", "", "nobody", "NO_PROVIDER"},
		{"host stops", "HOST_STOPPING", "", "stopping", ""},
		{"validator", "VALIDATOR_FAILED", "", "failed", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := newScript(t, map[string]any{"userQuestions/ask": refusedWith(tc.code, tc.field, tc.message)})
			out, _ := serve(t, "claude-code", asksIt, t.TempDir(), h)
			if tc.want == "" && out != "" || !strings.Contains(out, tc.want) || strings.Contains(out, `"allow"`) {
				t.Errorf("wrote %q, want %q in it", out, tc.want)
			}
			if tc.want != "" && !strings.Contains(out, "Nobody has chosen or approved anything") {
				t.Errorf("wrote %q", out)
			}
		})
	}
}

// A window longer than one call may hold is waited for in pieces.
func TestLongWindowIsHeldInPieces(t *testing.T) {
	h := newScript(t, map[string]any{
		"userQuestions/ask":   `{"status":"pending","callId":"c1","remainingMs":60000}`,
		"userQuestions/await": `{"status":"answered","callId":"c1","messageId":"m1","answers":[{"id":"q1","selected":["A"]}]}`,
	})
	if out, _ := serve(t, "claude-code", asksIt, t.TempDir(), h); !strings.Contains(out, `"permissionDecision":"allow"`) {
		t.Errorf("wrote %q after %v", out, h.calls)
	}
}

// Two questions of one text cannot be told apart in the tool's own shape.
func TestSameTextTwiceIsAnsweredInWords(t *testing.T) {
	twice := strings.Replace(asksIt, `{"question":"Which?","options":[{"label":"A"},{"label":"B"}]}`,
		`{"question":"Which?","options":[{"label":"A"},{"label":"B"}]},{"question":"Which?","options":[{"label":"A"},{"label":"B"}]}`, 1)
	h := newScript(t, map[string]any{"userQuestions/ask": `{"status":"answered","callId":"c1","messageId":"m1","answers":[{"id":"q1","selected":["A"]},{"id":"q2","selected":["B"]}]}`})
	out, _ := serve(t, "claude-code", twice, t.TempDir(), h)
	if !strings.Contains(out, `"deny"`) || !strings.Contains(out, `\"id\":\"q1\"`) || !strings.Contains(out, `\"id\":\"q2\"`) {
		t.Errorf("wrote %q", out)
	}
}

func TestLongAnswerInAReasonIsNamed(t *testing.T) {
	input := strings.Replace(strings.Replace(asksIt, "AskUserQuestion", "request_user_input", 1), `"tool_use_id"`, `"turn_id":"t","tool_use_id"`, 1)
	h := newScript(t, map[string]any{"userQuestions/ask": `{"status":"answered","callId":"c1","messageId":"m1","answers":[{"id":"q1","selected":[],"custom":"` + strings.Repeat("x", 2*contextMax) + `"}]}`})
	out, _ := serve(t, "codex", input, t.TempDir(), h)
	if !strings.Contains(out, "meanwhile await c1 --session 'codex:s1'") || len(out) > 1000 {
		t.Errorf("wrote %d bytes: %.300s", len(out), out)
	}
}

func TestNotesAreBoundedAndSwept(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "old"+noteSuffix)
	if err := os.WriteFile(old, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-2 * noteAge)
	if err := os.Chtimes(old, long, long); err != nil {
		t.Fatal(err)
	}
	n, err := openNote(dir, "k")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 * pendingMax {
		n.keepPending(fmt.Sprint(i), fmt.Sprint("c", i))
	}
	if err := n.save(); err != nil {
		t.Fatal(err)
	}
	n.close()
	if _, err := os.Stat(old); !os.IsNotExist(err) {
		t.Errorf("the old note is still there: %v", err)
	}
	if n, err = openNote(dir, "k"); err != nil {
		t.Fatal(err)
	}
	defer n.close()
	if len(n.Pending) != pendingMax || n.pendingAsk("0") != "" || n.pendingAsk(fmt.Sprint(2*pendingMax-1)) == "" {
		t.Errorf("kept %d: %v", len(n.Pending), n.Pending)
	}
	// One that was cut amid writing is none.
	if err := os.WriteFile(n.path, []byte(`{"given":["m`), 0o600); err != nil {
		t.Fatal(err)
	}
	n.close()
	if n, err = openNote(dir, "k"); err != nil || !n.empty() {
		t.Errorf("got %+v, %v", n, err)
	}
}

// The shapes of the native tools, and the same question in the host's.
func TestReadNative(t *testing.T) {
	for _, tc := range []struct {
		name, input string
		want        []question
	}{
		{name: "bare, with choices", input: `{"question":"Which?","choices":["A, or B","C"]}`,
			want: []question{{ID: "q1", Question: "Which?", Options: []option{{Label: "A, or B"}, {Label: "C"}}}}},
		{name: "arguments as a text", input: `"{\"question\":\"Which?\"}"`, want: []question{{ID: "q1", Question: "Which?"}}},
		{name: "with an id", input: `{"questions":[{"id":"store","question":"Which?","options":[{"label":"A","description":"d","preview":"x"}]}]}`,
			want: []question{{ID: "store", Question: "Which?", Options: []option{{Label: "A", Description: "d"}}}}},
		{name: "yes or no", input: `{"questions":[{"question":"Go?","type":"yesno"},{"question":"Why?","type":"text"}]}`,
			want: []question{{ID: "q1", Question: "Go?", Options: []option{{Label: "Yes"}, {Label: "No"}}}, {ID: "q2", Question: "Why?"}}},
		{name: "several may be chosen", input: `{"questions":[{"question":"Which?","multi_select":true},{"question":"What?","multiSelect":true}]}`,
			want: []question{{ID: "q1", Question: "Which?", MultiSelect: true}, {ID: "q2", Question: "What?", MultiSelect: true}}},
	} {
		got, err := readNative([]byte(tc.input))
		if d := cmp.Diff(tc.want, got); d != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", tc.name, err, d)
		}
	}
}
