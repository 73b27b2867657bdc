package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"meanwhile/host/jsonrpc"
	"meanwhile/shared/event"
	"meanwhile/shared/event/value"
	"meanwhile/shared/projection"
)

// waiter is one command that waits for an outcome.
type waiter struct {
	ctx     context.Context
	host    *steady
	flags   *askFlags
	cmd     *cobra.Command
	holder  string
	key     string
	session string
}

// open finds the session of the key, or of the directory.
func (w *waiter) open(existing bool) error {
	cwd, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("the working directory: %w", err)
	}
	w.key = w.flags.session
	if w.key == "" {
		w.key = directoryKey(cwd)
	}
	var got struct{ SessionID string }
	err = w.host.Call(w.ctx, "session/open", map[string]any{
		"title": "command line in " + filepath.Base(cwd), "key": w.key, "existing": existing,
		"agent": map[string]string{"kind": event.KindExternal, "name": "command line", "cwd": cwd},
	}, &got)
	w.session = got.SessionID
	return err
}

func directoryKey(dir string) string {
	if key := "cli:" + dir; utf8.RuneCountInString(key) <= keyMax {
		return key
	}
	sum := sha256.Sum256([]byte(dir))
	return "cli:" + hex.EncodeToString(sum[:])
}

// outcome is where an ask stands, as the host says and as --json prints it.
type outcome struct {
	Status      string              `json:"status"`
	CallID      string              `json:"callId"`
	SessionID   string              `json:"sessionId,omitempty"`
	Answers     []projection.Answer `json:"-"`
	Raw         json.RawMessage     `json:"answers,omitempty"`
	MessageID   string              `json:"messageId,omitempty"`
	RemainingMs *int64              `json:"remainingMs,omitempty"`
	Shown       *bool               `json:"shown,omitempty"`
}

func (o *outcome) runs() bool { return o.RemainingMs != nil && *o.RemainingMs > 0 }

func (w *waiter) ask(params map[string]any) error {
	params["sessionId"], params["holder"], params["holdMs"] = w.session, w.holder, holdEach.Milliseconds()
	quiet := w.say("")
	var o outcome
	err := w.host.Call(w.ctx, "userQuestions/ask", params, &o)
	quiet()
	if err != nil {
		return w.failed(err)
	}
	return w.follow(o, func(o outcome) bool { return o.Status == "waiting" || o.runs() })
}

// await waits for an outcome at most d; 0: until it is there.
func (w *waiter) await(callID string, d time.Duration) error {
	until := time.Now().Add(d)
	o, err := w.hold(callID, d)
	if err != nil {
		return w.failed(err)
	}
	return w.follow(o, func(o outcome) bool {
		return o.Status != "answered" && (d == 0 || time.Now().Before(until))
	})
}

func (w *waiter) hold(callID string, d time.Duration) (o outcome, err error) {
	hold := holdEach
	if d > 0 {
		hold = min(hold, max(d, time.Millisecond))
	}
	quiet := w.say(callID)
	defer quiet()
	err = w.host.Call(w.ctx, "userQuestions/await", map[string]any{
		"sessionId": w.session, "callId": callID, "holder": w.holder, "holdMs": hold.Milliseconds(),
	}, &o)
	return o, err
}

// follow holds on while there is reason to, and prints how it ended.
func (w *waiter) follow(o outcome, on func(outcome) bool) error {
	for on(o) {
		next, err := w.hold(o.CallID, 0)
		if err != nil && w.ctx.Err() != nil {
			break // interrupted: the ask stands where it stood
		}
		if err != nil {
			return w.failed(err)
		}
		o = next
	}
	return w.print(o)
}

// say tells now and then that the command waits, until the function it returns
// is called.
func (w *waiter) say(callID string) (quiet func()) {
	if w.flags.quiet {
		return func() {}
	}
	started := time.Now()
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(sayEvery)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				if callID != "" {
					fmt.Fprintf(w.cmd.ErrOrStderr(), "waiting for the answer to %s, %v\n", clean(callID), time.Since(started).Round(time.Second))
				} else {
					fmt.Fprintf(w.cmd.ErrOrStderr(), "waiting for the answer, %v\n", time.Since(started).Round(time.Second))
				}
			}
		}
	}()
	return func() { close(done); <-ended }
}

// print writes an outcome and ends the command with its code. Only an answer
// that was written whole is acknowledged.
func (w *waiter) print(o outcome) error {
	out, diag := w.cmd.OutOrStdout(), w.cmd.ErrOrStderr()
	o.SessionID = w.session
	if o.Status != "answered" {
		if w.flags.json {
			if err := printSafe(out, o); err != nil {
				return err
			}
		}
		switch {
		case o.Status == "waiting" || o.runs():
			fmt.Fprintf(diag, "not answered yet; the question stays open as %s\n", clean(o.CallID))
		default:
			fmt.Fprintf(diag, "nothing was answered in time: neither a skip nor permission. The question stays open as %s\n", clean(o.CallID))
		}
		if o.Shown != nil && !*o.Shown {
			fmt.Fprintln(diag, "no screen has shown it to anybody yet: `meanwhile login"+sameHost(w.cmd)+"` prints a link to one")
		}
		fmt.Fprintf(diag, "take the answer with: meanwhile await %s --session %s%s\n", clean(o.CallID), shellWord(w.key), sameHost(w.cmd))
		return codeError(exitPending)
	}
	doc, err := value.Parse(o.Raw)
	if err != nil {
		return fmt.Errorf("the answers of the host: %w", err)
	}
	answers, ok := projection.AnswersOf(doc)
	if !ok {
		return errors.New("the answers of the host are not readable")
	}
	messageID := o.MessageID
	if w.flags.json {
		o.MessageID = ""
		err = printSafe(out, o)
	} else {
		err = printAnswers(out, answers)
	}
	if err != nil || messageID == "" {
		return err
	}
	// The answer is here now. Not to be cut by the signal that came meanwhile.
	err = w.host.Call(context.WithoutCancel(w.ctx), "inbox/admit", map[string]any{"sessionId": w.session, "messageIds": []string{messageID}}, nil)
	if err != nil {
		fmt.Fprintf(diag, "the answer could not be acknowledged and may come again: %v\n", plainError(err))
	}
	return nil
}

// failed says how an ask ended without an outcome, and picks the code.
func (w *waiter) failed(err error) error {
	var refused *jsonrpc.Error
	if w.ctx.Err() != nil && !errors.As(err, &refused) {
		fmt.Fprintln(w.cmd.ErrOrStderr(), "interrupted; what was asked stays open")
		return codeError(exitPending)
	}
	if !errors.As(err, &refused) {
		return err
	}
	var data struct {
		Code  string `json:"code"`
		Field string `json:"field,omitempty"`
	}
	_ = json.Unmarshal(refused.Data, &data) // without data the message stands alone
	if w.flags.json {
		problem := map[string]any{"code": data.Code, "message": refused.Message}
		if data.Field != "" {
			problem["field"] = data.Field
		}
		if err := printSafe(w.cmd.OutOrStdout(), map[string]any{"error": problem}); err != nil {
			return err
		}
	}
	text := clean(refused.Message)
	if data.Field != "" {
		text = clean(data.Field) + ": " + text
	}
	if data.Code != "" {
		text = data.Code + ": " + text
	}
	fmt.Fprintf(w.cmd.ErrOrStderr(), "meanwhile: %s\n", text)
	switch data.Code {
	case "EMPTY_QUESTIONS", "BAD_QUESTIONS", "BAD_INTENT", "BAD_TIMEOUT", "REQUEST_CONFLICT", "EVENT_TOO_LARGE":
		return codeError(exitRefused)
	case "ASK_CANCELLED", "ASK_ABORTED", "ASK_WITHDRAWN", "NO_PROVIDER":
		return codeError(exitEnded)
	}
	return codeError(exitFailed)
}
