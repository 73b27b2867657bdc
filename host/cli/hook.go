package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"meanwhile/host/hook"
)

// notesDir is where hooks note what they handed over, in the data directory.
const notesDir = "hooks"

func newHook() *cobra.Command {
	var window time.Duration
	var debug bool
	c := &cobra.Command{
		Use:   "hook " + strings.Join(hook.Agents(), "|"),
		Short: "Serve one hook of a coding agent, which runs this command itself",
		Long: "Reads the payload of a hook on standard input and writes what the agent is to read, or nothing.\n" +
			"The questions of the agent's own question tool go to the host; late answers come back as context.\n" +
			"It always ends with 0 and is silent about its faults, as agents take other codes for a refusal;\n" +
			"--debug names them on standard error. `meanwhile install` writes the hooks into an agent's settings.",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			told := func(err error) {
				if debug {
					fmt.Fprintf(cmd.ErrOrStderr(), "meanwhile hook: %v\n", clean(err.Error()))
				}
			}
			if len(args) != 1 || window < time.Second || window%time.Second != 0 {
				told(fmt.Errorf("usage: %s --window 2m (whole seconds)", cmd.UseLine()))
				return nil
			}
			data, err := dataDir(cmd)
			if err != nil {
				told(err)
				return nil
			}
			command := "meanwhile"
			if flag := cmd.Flags().Lookup("data"); flag.Changed {
				command += " --data '" + strings.ReplaceAll(data, "'", `'\''`) + "'"
			}
			var host *steady
			defer func() {
				if host != nil {
					host.close()
				}
			}()
			hook.Run(cmd.Context(), hook.Options{
				Agent: args[0], Notes: filepath.Join(data, notesDir), Window: window, Command: command, Debug: told,
				Host: func(ctx context.Context) (hook.Host, error) {
					var err error
					host, err = dialSteady(ctx, data, "", restartWithin)
					return host, err
				},
			}, cmd.InOrStdin(), cmd.OutOrStdout())
			return nil
		},
	}
	c.Flags().DurationVar(&window, "window", hook.WindowDefault, "how long a question of the agent's own tool waits, whole seconds")
	c.Flags().BoolVar(&debug, "debug", false, "say on standard error what went wrong")
	hostFlags(c)
	c.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		fmt.Fprintf(cmd.ErrOrStderr(), "meanwhile hook: %v\n", clean(err.Error()))
		return errQuiet
	})
	return c
}
