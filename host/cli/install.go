package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"meanwhile/host/hook"
	"meanwhile/host/install"
)

// versionWithin is how long an agent's program may take to name its version.
const versionWithin = 10 * time.Second

// installFlags are what install, uninstall and doctor share.
type installFlags struct {
	scope  string
	window time.Duration
}

func (f *installFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.scope, "scope", string(install.User), "whose settings: user or project (the current directory)")
	hostFlags(c)
}

// options are those of one agent's settings.
func (f *installFlags) options(cmd *cobra.Command, agent string) (install.Options, error) {
	o := install.Options{Agent: agent, Scope: install.Scope(f.scope), Window: f.window}
	if o.Scope != install.User && o.Scope != install.Project {
		return o, &usageError{fmt.Errorf("--scope %q: write user or project", f.scope)}
	}
	if o.Window == 0 {
		o.Window = hook.WindowDefault
	}
	if o.Window < time.Second || o.Window%time.Second != 0 {
		return o, &usageError{fmt.Errorf("--window %v: write whole seconds, such as 2m", o.Window)}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return o, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return o, fmt.Errorf("the working directory: %w", err)
	}
	o.Place = install.Place{Home: home, Dir: dir, Env: os.Getenv, Version: func(program string) string {
		ctx, cancel := context.WithTimeout(cmd.Context(), versionWithin)
		defer cancel()
		out, err := exec.CommandContext(ctx, program, "--version").Output()
		if err != nil {
			return "" // it is not there, or says nothing
		}
		return string(out)
	}}
	o.Command = programName(o.Scope)
	for _, name := range []string{"data", "config"} {
		if flag := cmd.Flags().Lookup(name); flag.Changed {
			path, err := filepath.Abs(flag.Value.String())
			if err != nil {
				return o, err
			}
			o.Args = append(o.Args, "--"+name, path)
		}
	}
	return o, nil
}

// programName is how an agent starts this program: by its name where the PATH
// finds it, and always in a project's settings, which others share.
func programName(scope install.Scope) string {
	const name = "meanwhile"
	self, err := os.Executable()
	if err != nil || scope == install.Project || onPath(name) {
		return name
	}
	return self
}

func onPath(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}

func newInstall() *cobra.Command {
	var f installFlags
	var dry bool
	c := &cobra.Command{
		Use:   "install " + strings.Join(install.Agents(), "|"),
		Short: "Write the hooks and the MCP server into a coding agent's settings",
		Long: "Adds to an agent's settings the hooks that bring it late answers and answer its own question tool, and the\n" +
			"MCP server with the tools to ask. What is there stays; a file that changes is kept beside itself as\n" +
			"*" + install.BackupSuffix + ". Doing it twice changes nothing the second time. --dry-run prints the changes and writes nothing.",
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := f.options(cmd, args[0])
			if err != nil {
				return err
			}
			p, err := install.Install(o)
			if err != nil {
				return agentError(err, args[0])
			}
			if err := carryOut(cmd, p, dry, args[0]+" has everything already"); err != nil {
				return err
			}
			if o.Command == "meanwhile" && !onPath(o.Command) {
				fmt.Fprintln(cmd.ErrOrStderr(), "meanwhile is not on the PATH yet: put it there, or the agent cannot start it")
			}
			for _, note := range p.Notes {
				fmt.Fprintln(cmd.ErrOrStderr(), note)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&dry, "dry-run", false, "print what would change, and change nothing")
	c.Flags().DurationVar(&f.window, "window", hook.WindowDefault, "how long a question of the agent's own tool waits, whole seconds")
	f.add(c)
	return c
}

func newUninstall() *cobra.Command {
	var f installFlags
	var dry bool
	c := &cobra.Command{
		Use:   "uninstall " + strings.Join(install.Agents(), "|"),
		Short: "Take out of a coding agent's settings what install wrote",
		Args:  exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := f.options(cmd, args[0])
			if err != nil {
				return err
			}
			p, err := install.Uninstall(o)
			if err != nil {
				return agentError(err, args[0])
			}
			return carryOut(cmd, p, dry, "nothing of this program is in the settings of "+args[0])
		},
	}
	c.Flags().BoolVar(&dry, "dry-run", false, "print what would change, and change nothing")
	c.Flags().DurationVar(&f.window, "window", hook.WindowDefault, "the window that was installed")
	f.add(c)
	return c
}

// agentError makes a name that is no agent's a wrong command line.
func agentError(err error, name string) error {
	if known(name) {
		return err
	}
	return &usageError{err}
}

// carryOut writes a plan, or shows it. none is said when there is nothing to do.
func carryOut(cmd *cobra.Command, p install.Plan, dry bool, none string) error {
	if len(p.Changes) == 0 {
		fmt.Fprintln(cmd.ErrOrStderr(), none)
		return nil
	}
	if dry {
		// A settings file is not ours: its text reaches the terminal as text.
		_, err := fmt.Fprint(cmd.OutOrStdout(), cleanText(p.Diff()))
		return err
	}
	if err := p.Apply(); err != nil {
		return err
	}
	for _, c := range p.Changes {
		switch {
		case c.After == nil:
			fmt.Fprintf(cmd.OutOrStdout(), "removed %s\n", clean(c.Path))
		case c.Backup:
			fmt.Fprintf(cmd.OutOrStdout(), "wrote %s (before: %s)\n", clean(c.Path), clean(c.Path+install.BackupSuffix))
		default:
			fmt.Fprintf(cmd.OutOrStdout(), "wrote %s\n", clean(c.Path))
		}
	}
	return nil
}
