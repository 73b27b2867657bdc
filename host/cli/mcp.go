package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"meanwhile/host/app"
	"meanwhile/host/config"
	"meanwhile/host/jsonrpc"
	"meanwhile/host/mcpserver"
)

// startWithin is how long a host that was just started may take to fail, in
// which case its reason is told instead of a silent wait.
const startWithin = 300 * time.Millisecond

func newMCP() *cobra.Command {
	var key string
	var hold time.Duration
	var noStart bool
	c := &cobra.Command{
		Use:   "mcp",
		Short: "Serve MCP on standard input and output, for an agent's own program",
		Long: "Gives an agent the tools ask_user_question, await_answer, check_inbox and withdraw_question.\n" +
			"It talks to the host of the data directory and starts one when none runs.\n\n" +
			"A call stays open a little less long than the agent's program allows; --hold or MEANWHILE_HOLD says how\n" +
			"long instead. One agent program in one directory is one session; --key or MEANWHILE_KEY names another.\n\n" +
			"With a token of the scope answer in MEANWHILE_ANSWER_TOKEN, questions are also shown as forms of the agent's\n" +
			"program, where it has such. Give one only to a program whose forms reach a person.",
		Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if text, ok := os.LookupEnv("MEANWHILE_HOLD"); ok && !cmd.Flags().Changed("hold") {
				var err error
				if hold, err = time.ParseDuration(text); err != nil {
					return &usageError{fmt.Errorf("MEANWHILE_HOLD: %q is no duration: write one such as 50s", text)}
				}
			}
			if hold < 0 || hold > mcpserver.HoldMax {
				return &usageError{fmt.Errorf("a hold is at most %v", mcpserver.HoldMax)}
			}
			if !cmd.Flags().Changed("key") {
				key = os.Getenv("MEANWHILE_KEY")
			}
			src := config.Sources{Flags: map[string]string{}, File: cmd.Flags().Lookup("config").Value.String()}
			if flag := cmd.Flags().Lookup("data"); flag.Changed {
				src.Flags["data"] = flag.Value.String()
			}
			data, err := config.DataDir(src)
			if err != nil {
				return err
			}
			cwd, err := os.Getwd()
			if err != nil {
				return fmt.Errorf("the working directory: %w", err)
			}
			link := &mcpserver.Link{Dial: func(ctx context.Context) (*jsonrpc.Conn, error) { return dial(ctx, data) }}
			if !noStart {
				link.Start = func(ctx context.Context) error { return startHost(ctx, data, src.File) }
			}
			defer link.Close()
			var answer func(ctx context.Context, h jsonrpc.Handler) (*jsonrpc.Conn, error)
			if token := os.Getenv("MEANWHILE_ANSWER_TOKEN"); token != "" {
				answer = func(ctx context.Context, h jsonrpc.Handler) (*jsonrpc.Conn, error) {
					conn, hello, err := dialAs(ctx, data, token, h)
					if err == nil && !slices.Contains(hello.Scopes, "answer") {
						conn.Close(jsonrpc.CloseNormal, "")
						conn.Wait()
						err = errors.New("the token in MEANWHILE_ANSWER_TOKEN has no scope answer: make one with `meanwhile token create --scope answer`")
					}
					return conn, err
				}
			}
			log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn}))
			in, out := io.NopCloser(cmd.InOrStdin()), nopCloser{cmd.OutOrStdout()}
			return mcpserver.Serve(cmd.Context(), in, out, mcpserver.Options{
				Host: link, Version: app.Version, Key: key, CWD: cwd, Hold: hold, Log: log, Answer: answer,
			})
		},
	}
	hostFlags(c)
	c.Flags().StringVar(&key, "key", "", "name of the session (default: by the agent's program and its directory)")
	c.Flags().DurationVar(&hold, "hold", 0, "longest time a call stays open (default: by the agent's program)")
	c.Flags().BoolVar(&noStart, "no-start", false, "do not start a host when none runs")
	return c
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// startHost starts a host that outlives this process. Two at once do no harm:
// one gets the data directory, and both callers reach it.
func startHost(ctx context.Context, data, file string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	if err := os.MkdirAll(data, 0o700); err != nil {
		return fmt.Errorf("make the data directory: %w", err)
	}
	path := filepath.Join(data, "host.log")
	// Only this start is kept: the file must not grow for ever.
	log, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("open the host's log: %w", err)
	}
	defer log.Close()
	args := []string{"serve", "--data", data}
	if file != "" {
		args = append(args, "--config", file)
	}
	host := exec.Command(self, args...)
	// Not its standard output: the login link there is for people.
	host.Stderr, host.SysProcAttr = log, detached()
	if err := host.Start(); err != nil {
		return fmt.Errorf("start %s: %w", self, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- host.Wait() }() // for this process's life, which is shorter or reaps it
	quick := time.NewTimer(startWithin)
	defer quick.Stop()
	select {
	case err := <-ended:
		if c, dialErr := dial(ctx, data); dialErr == nil {
			c.Close(jsonrpc.CloseNormal, "done") // another was faster
			c.Wait()
			return nil
		}
		said, _ := os.ReadFile(path) // what it said is a help, not a need
		return fmt.Errorf("the host ended at once: %s", clean(errors.Join(err, errors.New(string(said))).Error()))
	case <-quick.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}
