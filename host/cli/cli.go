package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	exitFailed  = 1
	exitUsage   = 2
	exitRefused = 3
	exitPending = 4
	exitEnded   = 5
	exitMissing = 6
)

// usageError is a command line that cannot be carried out.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// errRefused ends a command that printed a refusal as its result.
var errRefused = errors.New("refused")

// errQuiet ends a command with 0 though its command line was wrong.
var errQuiet = errors.New("said already")

// codeError ends a command with a code of its own; what there is to say was said.
type codeError int

func (e codeError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// Main runs one command line and returns the exit code.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	var usage *usageError
	var code codeError
	switch {
	case err == nil, errors.Is(err, errQuiet):
		return 0
	case errors.As(err, &code):
		return int(code)
	case errors.Is(err, errRefused):
		return exitRefused
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "%v\nsee: %s --help\n", err, cmd.CommandPath())
		return exitUsage
	}
	fmt.Fprintf(stderr, "meanwhile: %v\n", err)
	return exitFailed
}

func newRoot() *cobra.Command {
	root := group(&cobra.Command{
		Use:           "meanwhile",
		Short:         "Agents ask, carry on meanwhile, and get your answer late",
		SilenceUsage:  true,
		SilenceErrors: true,
	},
		newServe(), newLogin(), newToken(), newSessions(), newExport(), newReplay(), newCheck(), newMCP(), newVersion(),
		newHook(), newAsk(), newAwait(), newInbox(), newAnswer(),
		newBackup(), newRestore(), newVerify(),
		newInstall(), newUninstall(), newDoctor())
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	return root
}

// group makes a command that only holds others: alone, or with a word it does
// not know, it is a usage error.
func group(c *cobra.Command, children ...*cobra.Command) *cobra.Command {
	c.AddCommand(children...)
	c.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return &usageError{fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath())}
		}
		return nil
	}
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		return &usageError{fmt.Errorf("%s needs a command", cmd.CommandPath())}
	}
	return c
}

// exactly takes that many arguments; their names are in the command's Use.
func exactly(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return &usageError{fmt.Errorf("usage: %s", cmd.UseLine())}
		}
		return nil
	}
}

// clean makes text of an agent or a person safe for a terminal: one line, no
// control, escape or invisible direction characters.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, text)
}
