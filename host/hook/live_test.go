package hook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"meanwhile/host/hook"
	"meanwhile/host/internal/hosttest"
)

// rig runs hooks of one agent session against a real host.
type rig struct {
	t     testing.TB
	host  *hosttest.Host
	notes string
}

func start(t testing.TB) *rig {
	h := hosttest.Start(t, hosttest.Options{})
	return &rig{t: t, host: h, notes: filepath.Join(h.Config().Data, "hooks")}
}

const (
	asks = `{"session_id":"s1","cwd":"/home/dev/shop","hook_event_name":"PreToolUse","tool_name":"AskUserQuestion","tool_use_id":"t1",` +
		`"tool_input":{"questions":[{"question":"Which store?","header":"Store","options":[{"label":"Postgres, HA"},{"label":"SQLite"}]}]}}`
	works   = `{"session_id":"s1","cwd":"/home/dev/shop","hook_event_name":"PostToolBatch","tool_calls":[]}`
	prompts = `{"session_id":"s1","cwd":"/home/dev/shop","hook_event_name":"UserPromptSubmit","prompt":"no, first tidy up"}`
	quiet   = `{"session_id":"s2","cwd":"/home/dev/shop","hook_event_name":"PostToolBatch","tool_calls":[]}`
)

// mortal is a connection whose process dies after a number of calls, with the
// last one made or not.
type mortal struct {
	conn hook.Host
	left int
}

var errDead = errors.New("the process is dead")

func (m *mortal) Call(ctx context.Context, method string, params, result any) error {
	if m.left--; m.left < 0 {
		return errDead
	}
	return m.conn.Call(ctx, method, params, result)
}

// run serves one hook in a process of its own: it connects, and its connection
// ends with it. calls is how many it lives for.
func (r *rig) run(stdin string, window time.Duration, calls int, out io.Writer) error {
	r.t.Helper()
	var trouble error
	c := r.host.Local()
	defer c.Leave()
	hook.Run(context.Background(), hook.Options{
		Agent: "claude-code", Notes: r.notes, Window: window,
		Host:  func(context.Context) (hook.Host, error) { return &mortal{c.Conn, calls}, nil },
		Debug: func(err error) { trouble = err },
	}, strings.NewReader(stdin), out)
	return trouble
}

const alive = 100

func (r *rig) hook(stdin string) string {
	r.t.Helper()
	var out bytes.Buffer
	if err := r.run(stdin, time.Second, alive, &out); err != nil {
		r.t.Fatalf("hook: %v", err)
	}
	return out.String()
}

// pending asks and lets the window pass, and returns the ask.
func (r *rig) pending() (sessionID, callID string) {
	r.t.Helper()
	out := r.hook(asks)
	_, rest, ok := strings.Cut(out, "as callId ")
	if !ok || !strings.Contains(out, `"permissionDecision":"deny"`) {
		r.t.Fatalf("wrote %q", out)
	}
	callID, _, _ = strings.Cut(rest, ".")
	var open struct{ SessionID string }
	r.host.Local().Call("session/open", map[string]any{"agent": map[string]string{"kind": "external", "name": "x"}, "key": "claude-code:s1", "existing": true}, &open)
	return open.SessionID, callID
}

// late answers as a person does after the window.
func (r *rig) late(sessionID, callID, custom string) {
	r.t.Helper()
	var got struct{ Accepted bool }
	r.host.Connect("Ann", "answer").Call("userQuestions/answer", map[string]any{
		"sessionId": sessionID, "callId": callID, "submissionId": "sub-" + callID,
		"answer": map[string]any{"answers": []any{map[string]any{"id": "q1", "selected": []string{}, "custom": custom}}},
	}, &got)
	if !got.Accepted {
		r.t.Fatal("the late answer was not accepted")
	}
}

// read counts how often the agent was recorded to have read a reply.
func (r *rig) read(sessionID string) (n int) {
	r.t.Helper()
	r.host.Local().Follow("session/follow", map[string]string{"sessionId": sessionID}, func(raw json.RawMessage) bool {
		var item struct {
			Seq    int64
			Events []struct {
				Seq  int64
				Type string
			}
			Header json.RawMessage
		}
		if err := json.Unmarshal(raw, &item); err != nil {
			r.t.Fatal(err)
		}
		for _, e := range item.Events {
			if e.Type == "user/message" {
				n++
			}
		}
		return len(item.Events) > 0
	})
	return n
}

func TestAnsweredWhileTheToolWaits(t *testing.T) {
	r := start(t)
	person := r.host.Connect("Ann", "answer")
	out := make(chan string, 1)
	go func() {
		var buf bytes.Buffer
		_ = r.run(asks, time.Minute, alive, &buf)
		out <- buf.String()
	}()
	person.Next().Answer(`[{"id":"q1","selected":["Postgres, HA"]}]`)
	if got := <-out; !strings.Contains(got, `"permissionDecision":"allow"`) || !strings.Contains(got, `"answers":{"Which store?":"Postgres, HA"}`) {
		t.Fatalf("wrote %q", got)
	}
	if got := r.hook(works); got != "" {
		t.Errorf("the answer came again: %q", got)
	}
}

// The late answer reaches the agent once, also over a restart of the host.
func TestLateReplyOnce(t *testing.T) {
	r := start(t)
	session, call := r.pending()
	// Neither a tool nor a word about something else ends the question.
	for _, stdin := range []string{works, prompts} {
		if got := r.hook(stdin); got != "" {
			t.Errorf("before the answer: wrote %q", got)
		}
	}
	r.late(session, call, "SQLite")
	r.host.Restart()
	first := r.hook(works)
	if !strings.Contains(first, "SQLite") || !strings.Contains(first, call) {
		t.Fatalf("wrote %q", first)
	}
	if n := r.read(session); n != 0 {
		t.Errorf("recorded as read %d times before the next call", n)
	}
	r.host.Restart()
	for range 3 {
		if got := r.hook(works); got != "" {
			t.Errorf("came again: %q", got)
		}
	}
	if n := r.read(session); n != 1 {
		t.Errorf("recorded as read %d times, want 1", n)
	}
	// Sessions of agents that never asked are not made.
	if got := r.hook(quiet); got != "" {
		t.Errorf("wrote %q", got)
	}
	if n := len(r.sessions()); n != 1 {
		t.Errorf("%d sessions, want 1", n)
	}
}

func (r *rig) sessions() (rows []json.RawMessage) {
	r.host.Local().Follow("host/follow", map[string]any{}, func(raw json.RawMessage) bool {
		var item struct{ Sessions []json.RawMessage }
		if err := json.Unmarshal(raw, &item); err != nil {
			r.t.Fatal(err)
		}
		rows = item.Sessions
		return true
	})
	return rows
}

type pipe struct{ fail bool }

func (p pipe) Write(b []byte) (int, error) {
	if p.fail {
		return 0, io.ErrClosedPipe
	}
	return len(b), nil
}

// A hook that dies anywhere between the claim and the acknowledgement costs
// nothing: the reply comes again until a later hook acknowledged it, and never
// after that.
func TestKilledBetweenHandOverAndAcknowledgement(t *testing.T) {
	for _, tc := range []struct {
		name  string
		calls int  // that the hook lives for
		deaf  bool // its output goes nowhere
		again bool // the reply must come again after it
	}{
		{name: "before it opens", calls: 0, again: true},
		{name: "before it claims", calls: 1, again: true},
		{name: "between claim and writing", calls: 2, deaf: true, again: true},
		{name: "after it wrote and noted", calls: 2, again: false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := start(t)
			session, call := r.pending()
			r.late(session, call, "needle")
			_ = r.run(works, time.Second, tc.calls, pipe{tc.deaf})
			// The next process dies before its acknowledgement is made, too.
			_ = r.run(works, time.Second, 1, pipe{})
			got := r.hook(works)
			if strings.Contains(got, "needle") != tc.again {
				t.Errorf("wrote %q, want the reply again: %v", got, tc.again)
			}
			r.hook(works)
			if n := r.read(session); n != 1 {
				t.Errorf("recorded as read %d times, want 1", n)
			}
			for range 2 {
				if got := r.hook(works); got != "" {
					t.Errorf("came after it was acknowledged: %q", got)
				}
			}
		})
	}
}

// The agent killed its hook while the question was open: the answer that then
// came in the window is not lost.
func TestKilledWhileAsking(t *testing.T) {
	r := start(t)
	person := r.host.Connect("Ann", "answer")
	c := r.host.Local()
	done := make(chan struct{})
	go func() {
		defer close(done)
		hook.Run(context.Background(), hook.Options{
			Agent: "claude-code", Notes: r.notes, Window: time.Minute,
			Host: func(context.Context) (hook.Host, error) { return c.Conn, nil },
		}, strings.NewReader(asks), io.Discard)
	}()
	ask := person.Next()
	c.Leave()
	<-done
	ask.Answer(`[{"id":"q1","selected":["SQLite"]}]`)
	<-ask.Gone
	for deadline := time.Now().Add(10 * time.Second); ; {
		if got := r.hook(works); strings.Contains(got, "SQLite") {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("the answer never came: %q", got)
		}
	}
	if got := r.hook(works); got != "" {
		t.Errorf("came again: %q", got)
	}
}

// Asks at once are independent: each gets its own answer.
func TestFiveAtOnce(t *testing.T) {
	r := start(t)
	person := r.host.Connect("Ann", "answer")
	const n = 5
	var outs [n]bytes.Buffer
	var hooks sync.WaitGroup
	for i := range n {
		stdin := strings.ReplaceAll(strings.ReplaceAll(asks, "Which store?", fmt.Sprintf("Which store %d?", i)), `"t1"`, fmt.Sprintf(`"t%d"`, i))
		hooks.Go(func() { _ = r.run(stdin, time.Minute, alive, &outs[i]) })
	}
	open := map[string]*hosttest.Ask{}
	for range n {
		a := person.Next()
		open[string(a.Request.Questions)] = a
	}
	for i := n - 1; i >= 0; i-- {
		for text, a := range open {
			if strings.Contains(text, fmt.Sprintf("Which store %d?", i)) {
				a.Answer(fmt.Sprintf(`[{"id":"q1","selected":[],"custom":"number %d"}]`, i))
			}
		}
	}
	hooks.Wait()
	for i := range n {
		if want := fmt.Sprintf(`"answers":{"Which store %d?":"number %d"}`, i, i); !strings.Contains(outs[i].String(), want) {
			t.Errorf("hook %d wrote %q, want %s", i, &outs[i], want)
		}
	}
	if got := r.hook(works); got != "" {
		t.Errorf("came again: %q", got)
	}
}

// One process for each hook: what an agent waits for when nothing is there.
func BenchmarkEmptyInbox(b *testing.B) {
	r := start(b)
	r.pending()
	for b.Loop() {
		if got := r.hook(works); got != "" {
			b.Fatal(got)
		}
	}
}

func BenchmarkNeverAsked(b *testing.B) {
	r := start(b)
	for b.Loop() {
		r.hook(quiet)
	}
}

func ExampleAgents() {
	fmt.Println(hook.Agents())
	// Output: [claude-code codex copilot gemini cursor]
}
