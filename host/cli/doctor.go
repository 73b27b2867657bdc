package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"meanwhile/host/app"
	"meanwhile/host/install"
)

// lookWithin bounds the doctor's talk with the host.
const lookWithin = 5 * time.Second

func newDoctor() *cobra.Command {
	var f installFlags
	c := &cobra.Command{
		Use:   "doctor [AGENT]",
		Short: "Say what keeps questions from reaching you, and how to mend it",
		Long: "Looks at the program, the host, the page and the settings of the agents that were installed, or of AGENT.\n" +
			"Each line is ok, or says what is wrong and what to do. Exit codes: 0 all is well · 1 something is wrong.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			d := &doctor{cmd: cmd}
			d.program()
			data, err := dataDir(cmd)
			if err != nil {
				return err
			}
			d.host(data)
			names := install.Agents()
			if len(args) == 1 {
				names = args
			}
			for _, name := range names {
				if err := d.agent(&f, name, len(args) == 1); err != nil {
					return err
				}
			}
			if d.bad > 0 {
				return codeError(exitFailed)
			}
			return nil
		},
	}
	f.add(c)
	return c
}

// doctor writes its findings as it goes.
type doctor struct {
	cmd *cobra.Command
	bad int
}

func (d *doctor) ok(format string, args ...any) {
	fmt.Fprintf(d.cmd.OutOrStdout(), "ok     "+format+"\n", args...)
}

func (d *doctor) wrong(what, fix string) {
	d.bad++
	fmt.Fprintf(d.cmd.OutOrStdout(), "WRONG  %s\n       %s\n", clean(what), clean(fix))
}

func (d *doctor) program() {
	if !onPath("meanwhile") {
		self, err := os.Executable()
		if err != nil {
			self = "the program"
		}
		d.wrong("meanwhile is not on the PATH, so agents cannot start it", "link it into a directory of the PATH: ln -s "+self+" ~/.local/bin/meanwhile")
		return
	}
	d.ok("the program is on the PATH, version %s", app.Version)
}

func (d *doctor) host(data string) {
	socket := app.SocketPath(data)
	info, err := os.Lstat(socket)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.wrong("no host runs on "+data, "start it: meanwhile serve")
		return
	case err != nil:
		d.wrong(err.Error(), "make the directory yours: chown -R \"$USER\" "+data)
		return
	case info.Mode().Perm()&0o077 != 0:
		d.wrong(fmt.Sprintf("others may open the socket %s (mode %#o)", socket, info.Mode().Perm()), "close it: chmod 600 "+socket)
	}
	if dir, err := os.Stat(data); err == nil && dir.Mode().Perm()&0o077 != 0 {
		d.wrong(fmt.Sprintf("others may read %s (mode %#o)", data, dir.Mode().Perm()), "close it: chmod 700 "+data)
	}
	ctx, cancel := context.WithTimeout(d.cmd.Context(), lookWithin)
	defer cancel()
	c, err := dialSteady(ctx, data, "", 0)
	if err != nil {
		d.wrong(err.Error(), "start the host again: meanwhile serve")
		return
	}
	defer c.close()
	d.ok("a host runs on %s", clean(data))
	var out struct {
		Tokens []struct {
			Scopes []string `json:"scopes"`
			Login  bool     `json:"login"`
		} `json:"tokens"`
	}
	if err := c.Call(ctx, "token/list", map[string]any{}, &out); err != nil {
		d.wrong("the host does not say who is signed in: "+plainError(err).Error(), "start the host again: meanwhile serve")
		return
	}
	for _, t := range out.Tokens {
		for _, scope := range t.Scopes {
			if scope == "answer" {
				d.ok("somebody can answer: a browser or another client is signed in")
				return
			}
		}
	}
	d.wrong("no browser is signed in, so nobody sees a question", "open the link that this prints: meanwhile login")
}

// agent looks at one agent's settings. One that was never installed is only
// wrong when it was asked for.
func (d *doctor) agent(f *installFlags, name string, asked bool) error {
	found := false
	for _, scope := range []install.Scope{install.User, install.Project} {
		if d.cmd.Flags().Changed("scope") && f.scope != string(scope) {
			continue
		}
		one := installFlags{scope: string(scope), window: f.window}
		o, err := one.options(d.cmd, name)
		if err != nil {
			return err
		}
		missing, any, err := install.Missing(o)
		fix := fmt.Sprintf("write them: meanwhile install %s --scope %s", name, scope)
		switch {
		case err != nil && !known(name):
			return &usageError{err}
		case err != nil:
			found = true
			d.wrong(name+": "+err.Error(), "mend the file, then: meanwhile install "+name)
		case any && len(missing) > 0:
			found = true
			d.wrong(fmt.Sprintf("%s: the entries in %s are missing or of another version", name, missing[0]), fix)
		case any:
			found = true
			d.ok("%s is installed for the %s", name, scope)
		}
	}
	if !found && asked {
		d.wrong(name+" has no entries of this program", "write them: meanwhile install "+name)
	}
	return nil
}

func known(agent string) bool {
	for _, name := range install.Agents() {
		if name == agent {
			return true
		}
	}
	return false
}
