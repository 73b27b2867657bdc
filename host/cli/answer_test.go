package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"meanwhile/host/internal/hosttest"
)

// within bounds every wait of a test.
const within = 30 * time.Second

// running is one command line at work.
type running struct {
	t           *testing.T
	stdin       *io.PipeWriter
	out, errors logged
	code        chan int
}

type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
	bell chan struct{}
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.bell <- struct{}{}:
	default:
	}
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func command(t *testing.T, h *hosttest.Host, args ...string) *running {
	t.Helper()
	in, stdin := io.Pipe()
	r := &running{t: t, stdin: stdin, code: make(chan int, 1)}
	r.out.bell, r.errors.bell = make(chan struct{}, 1), make(chan struct{}, 1)
	args = append(args, "--data", h.Config().Data)
	go func() {
		r.code <- Main(context.Background(), args, in, &r.out, &r.errors)
		_ = in.Close()
	}()
	return r
}

func (r *running) types(text string) {
	r.t.Helper()
	if _, err := io.WriteString(r.stdin, text); err != nil {
		r.t.Fatalf("type %q: %v\n%s", text, err, &r.errors)
	}
}

// says waits until the command has told this.
func (r *running) says(text string) {
	r.t.Helper()
	late := time.After(within)
	for !strings.Contains(r.errors.String(), text) {
		select {
		case <-r.errors.bell:
		case <-late:
			r.t.Fatalf("%q was not said:\n%s", text, &r.errors)
		}
	}
}

func (r *running) ends(want int) {
	r.t.Helper()
	select {
	case got := <-r.code:
		if got != want {
			r.t.Errorf("exit code %d, want %d\n%s", got, want, &r.errors)
		}
	case <-time.After(within):
		r.t.Fatalf("the command did not end\n%s", &r.errors)
	}
}

// asked opens a session and asks in it, held by a call of its own.
func asked(t *testing.T, h *hosttest.Host, timeout int) (sessionID string, done <-chan error) {
	t.Helper()
	agent := h.Local()
	var open struct{ SessionID string }
	agent.Call("session/open", map[string]any{"agent": map[string]string{"kind": "external", "name": "x"}, "key": "k"}, &open)
	result := make(chan error, 1)
	go func() {
		result <- agent.Try("userQuestions/ask", map[string]any{
			"sessionId": open.SessionID, "requestId": "r", "timeout": timeout,
			"questions": []any{map[string]any{"id": "q", "question": "Which?", "options": []any{map[string]string{"label": "A"}, map[string]string{"label": "B"}}}},
		}, nil)
	}()
	return open.SessionID, result
}

func TestAnswerWhileTheAgentWaits(t *testing.T) {
	for _, timeout := range []int{600, -1} {
		t.Run(fmt.Sprint(timeout), func(t *testing.T) {
			h := hosttest.Start(t, hosttest.Options{})
			token, _ := h.Token("Ann", "answer")
			session, done := asked(t, h, timeout)
			call := h.Connect("Page", "answer").Next().Request.Wait.CallID
			r := command(t, h, "answer", session, call)
			r.types(token + "\n")
			r.says("Which?")
			r.types("2\n")
			r.ends(0)
			r.says("answered")
			if err := <-done; err != nil {
				t.Errorf("the agent's call: %v", err)
			}
		})
	}
}

// The loser of a race is told who won, and keeps the text.
func TestAnswerAfterSomebodyElse(t *testing.T) {
	h := hosttest.Start(t, hosttest.Options{})
	token, _ := h.Token("Ann", "answer")
	session, done := asked(t, h, 600)
	page := h.Connect("Ben's phone", "answer").Next()
	r := command(t, h, "answer", session, page.Request.Wait.CallID)
	r.types(token + "\n")
	r.says("Which?")
	page.Answer(`[{"id":"q","selected":["A"]}]`)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	r.types("= my own words\n")
	r.ends(exitEnded)
	r.says("Ben's phone answered first")
	if got := r.out.String(); !strings.Contains(got, "my own words") {
		t.Errorf("the text is lost: %q", got)
	}
}

func TestAnswerToAWithdrawnAsk(t *testing.T) {
	h := hosttest.Start(t, hosttest.Options{})
	token, _ := h.Token("Ann", "answer")
	session, done := asked(t, h, 600)
	page := h.Connect("Page", "answer").Next()
	call := page.Request.Wait.CallID
	r := command(t, h, "answer", session, call)
	r.types(token + "\n")
	r.says("Which?")
	h.Local().Call("userQuestions/withdraw", map[string]string{"sessionId": session, "callId": call}, nil)
	<-done
	r.types("= my own words\n")
	r.ends(exitEnded)
	if got := r.out.String(); !strings.Contains(got, "my own words") {
		t.Errorf("the text is lost: %q", got)
	}
}

// What the host refuses leaves the question open.
func TestRefusedAnswerLeavesTheQuestionOpen(t *testing.T) {
	h := hosttest.Start(t, hosttest.Options{})
	token, _ := h.Token("Ann", "answer")
	session, done := asked(t, h, 600)
	page := h.Connect("Page", "answer").Next()
	r := command(t, h, "answer", session, page.Request.Wait.CallID)
	r.types(token + "\n")
	r.says("Which?")
	r.types("= " + strings.Repeat("x", 60_001) + "\n")
	r.ends(exitFailed)
	r.says("BAD_ANSWER")
	page.Answer(`[{"id":"q","selected":["A"]}]`)
	if err := <-done; err != nil {
		t.Errorf("the good answer after it: %v", err)
	}
}

// A host that restarts under a waiting command: the ask stands, and its late
// answer comes with await, once.
func TestAskOverARestart(t *testing.T) {
	h := hosttest.Start(t, hosttest.Options{})
	person := h.Connect("Ann", "answer")
	r := command(t, h, "ask", "Which?", "-o", "A", "-o", "B", "--timeout", "600", "--session", "k", "--json")
	call := person.Next().Request.Wait.CallID
	h.Restart()
	r.ends(exitPending)
	var got struct{ Status, CallID, SessionID string }
	if err := json.Unmarshal([]byte(r.out.String()), &got); err != nil || got.CallID != call || got.Status != "pending" {
		t.Fatalf("printed %q, %v", &r.out, err)
	}
	var answered struct{ Accepted bool }
	h.Connect("Ann", "answer").Call("userQuestions/answer", map[string]any{
		"sessionId": got.SessionID, "callId": call, "submissionId": "s",
		"answer": map[string]any{"answers": []any{map[string]any{"id": "q", "selected": []string{"B"}}}},
	}, &answered)
	if !answered.Accepted {
		t.Fatal("the late answer was not accepted")
	}
	a := command(t, h, "await", call, "--session", "k")
	a.ends(0)
	if a.out.String() != "B\n" {
		t.Errorf("printed %q", &a.out)
	}
	i := command(t, h, "inbox", "--session", "k")
	i.ends(0)
	if i.out.String() != "" {
		t.Errorf("came again: %q", &i.out)
	}
}
