package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"meanwhile/host/internal/id"
	"meanwhile/host/jsonrpc"
	"meanwhile/shared/event"
	"meanwhile/shared/event/value"
	"meanwhile/shared/projection"
)

const (
	// holdEach is one call's hold while a command waits; many make a wait.
	holdEach = 50 * time.Second
	// sayEvery is how often a waiting command says so.
	sayEvery = 10 * time.Second
	keyMax   = 200 // characters of a session's key
	// tokenEnv holds a token for a command that is to use one instead of the
	// socket's own rights.
	tokenEnv = "MEANWHILE_TOKEN"
)

const exitHelp = "\n\nExit codes: 0 answered · 1 it failed · 2 wrong command line · 3 the questions were refused ·\n" +
	"4 not answered yet (pending, or still waiting) · 5 ended without an answer (cancelled, withdrawn)."

// askFlags are what the commands of an agent share.
type askFlags struct {
	session string
	json    bool
	quiet   bool
}

func (f *askFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.session, "session", "", "key of the session (default: one for each directory)")
	c.Flags().BoolVar(&f.json, "json", false, "print JSON")
	c.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "say nothing while waiting")
	hostFlags(c)
}

func newAsk() *cobra.Command {
	var f askFlags
	var options []string
	var header, timeout, request, file string
	var multi bool
	c := &cobra.Command{
		Use:   "ask QUESTION [-o OPTION]…",
		Short: "Ask the person and wait for the answer",
		Long: "Asks one question and waits. Options are offered in their order, beside free text; without any, the\n" +
			"answer is free text. --questions takes a batch instead, as the tool ask_user_question spells it.\n" +
			"When nobody answers in time the question stays open: `meanwhile await CALL` takes the answer later.\n" +
			"Uses the socket of the running host, with the token in " + tokenEnv + " if there is one." + exitHelp,
		Example: `  meanwhile ask "Which store?" -o Postgres -o SQLite --timeout 2m
  meanwhile ask "Drop the table?" -o Yes -o No --timeout -1 --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var questions json.RawMessage
			var err error
			switch {
			case file != "" && (len(args) > 0 || len(options) > 0):
				return &usageError{errors.New("give a question, or --questions, and not both")}
			case file != "":
				if questions, err = readBatch(cmd, file); err != nil {
					return err
				}
			case len(args) == 0:
				return &usageError{errors.New("give the question, such as meanwhile ask \"Which store?\" -o Postgres -o SQLite")}
			default:
				questions = oneQuestion(args[0], header, options, multi)
			}
			params := map[string]any{"questions": questions, "requestId": request}
			if request == "" {
				params["requestId"] = id.New()
			}
			if cmd.Flags().Changed("timeout") {
				seconds, err := parseTimeout(timeout)
				if err != nil {
					return &usageError{err}
				}
				params["timeout"] = seconds
			}
			return f.run(cmd, false, func(w *waiter) error { return w.ask(params) })
		},
	}
	// An array and not a slice: a label may hold a comma.
	c.Flags().StringArrayVarP(&options, "option", "o", nil, "an option, once for each; a recommended one first")
	c.Flags().StringVar(&header, "header", "", "a short title")
	c.Flags().BoolVar(&multi, "multi", false, "more than one option may be chosen")
	c.Flags().StringVar(&timeout, "timeout", "", "how long to wait before carrying on: 90, 2m, or -1 to block (default: the host's)")
	c.Flags().StringVar(&request, "request-id", "", "name of this ask: the same name is the same ask, never a second one")
	c.Flags().StringVar(&file, "questions", "", "file of a JSON array of questions, or - for standard input")
	f.add(c)
	return c
}

func newAwait() *cobra.Command {
	var f askFlags
	var wait time.Duration
	c := &cobra.Command{
		Use:   "await CALL",
		Short: "Wait for the answer to an ask, or print it again",
		Long:  "Waits for the outcome of an ask of this session; one that was answered is printed again." + exitHelp,
		Args:  exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if wait < 0 {
				return &usageError{errors.New("--for must not be negative: 0 waits as long as it takes")}
			}
			return f.run(cmd, true, func(w *waiter) error { return w.await(args[0], wait) })
		},
	}
	c.Flags().DurationVar(&wait, "for", holdEach, "how long to wait for a late answer; 0: as long as it takes")
	f.add(c)
	return c
}

// parseTimeout takes what people write for a window: seconds, a duration of
// whole seconds, or -1.
func parseTimeout(text string) (int64, error) {
	bad := fmt.Errorf("--timeout %q is not a window: write whole seconds from 1 to %d, a duration such as 2m, or -1 to block", text, projection.TimeoutMaxSeconds)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		d, derr := time.ParseDuration(text)
		if derr != nil || d%time.Second != 0 {
			return 0, bad
		}
		n = int64(d / time.Second)
		if n == projection.Blocks {
			return 0, bad
		}
	}
	if n != projection.Blocks && (n < 1 || n > projection.TimeoutMaxSeconds) {
		return 0, bad
	}
	return n, nil
}

func oneQuestion(text, header string, options []string, multi bool) json.RawMessage {
	var w value.Writer
	w.BeginArray()
	w.Begin()
	w.StrField("id", "q")
	w.StrField("question", text)
	w.OptField("header", header)
	if len(options) > 0 {
		w.Name("options")
		w.BeginArray()
		for _, label := range options {
			w.Begin()
			w.StrField("label", label)
			w.End()
		}
		w.EndArray()
	}
	if multi {
		w.BoolField("multi_select", true)
	}
	w.End()
	w.EndArray()
	return w.Bytes()
}

// readBatch reads questions, bare or as the arguments of a call.
func readBatch(cmd *cobra.Command, file string) (json.RawMessage, error) {
	raw, err := readAll(cmd.InOrStdin(), file, maxDocument)
	if err != nil {
		return nil, err
	}
	v, err := value.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if qs := v.Get("questions"); qs.Kind() != value.Missing {
		v = qs
	}
	return v.Bytes(), nil
}

// run opens the session and does what a command waits with.
func (f *askFlags) run(cmd *cobra.Command, existing bool, do func(*waiter) error) error {
	data, err := dataDir(cmd)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	host, err := dialSteady(ctx, data, os.Getenv(tokenEnv), restartWithin)
	if err != nil {
		return err
	}
	defer host.close()
	w := &waiter{ctx: ctx, host: host, flags: f, cmd: cmd, holder: id.New()}
	if err := w.open(existing); err != nil {
		return w.failed(err)
	}
	return do(w)
}

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
