package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"meanwhile/host/internal/id"
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
