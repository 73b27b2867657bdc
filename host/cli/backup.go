package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"meanwhile/host/jsonrpc"
	"meanwhile/host/session"
	"meanwhile/host/session/logstore"
)

// errUnreadable marks a backup that the host cut short.
var errUnreadable = errors.New("the host sent something that is no part of a backup")

func newBackup() *cobra.Command {
	c := &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy everything the host holds into one file, also while it runs",
		Long: "Writes all sessions, questions, replies and the hashes of tokens, as they are at one instant, into a new FILE\n" +
			"that only you can read. The host goes on meanwhile; without one the data directory is read itself.",
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			data, err := dataDir(cmd)
			if err != nil {
				return err
			}
			return writeNew(args[0], func(w io.Writer) error { return backup(cmd.Context(), data, w) })
		},
	}
	hostFlags(c)
	return c
}

// backup copies from the host that has the directory, or from the directory.
func backup(ctx context.Context, data string, w io.Writer) error {
	store, err := logstore.Open(data, logstore.Options{ReadOnly: true, Log: slog.New(slog.DiscardHandler)})
	var locked *logstore.LockedError
	switch {
	case errors.As(err, &locked):
		return plainError(backupFrom(ctx, data, w))
	case err != nil:
		return fmt.Errorf("nothing to copy: %w", err)
	}
	return errors.Join(store.Backup(ctx, w), store.Close())
}

func backupFrom(ctx context.Context, data string, w io.Writer) error {
	conn, err := dial(ctx, data)
	if err != nil {
		return err
	}
	defer conn.Wait()
	defer conn.Close(jsonrpc.CloseNormal, "done")
	return conn.Stream(ctx, "host/backup", map[string]any{}, func(raw json.RawMessage) error {
		var item struct {
			Data []byte `json:"data"`
		}
		if err := json.Unmarshal(raw, &item); err != nil || len(item.Data) == 0 {
			return errUnreadable
		}
		_, err := w.Write(item.Data)
		return err
	})
}

// writeNew makes a file that is there whole, for this user only, or not at all.
func writeNew(name string, write func(io.Writer) error) (err error) {
	if _, err := os.Lstat(name); err == nil {
		return fmt.Errorf("%s is there already: name a new file", name)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".part*") // 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

func newRestore() *cobra.Command {
	c := &cobra.Command{
		Use:   "restore FILE",
		Short: "Make a data directory from a backup",
		Long: "Checks the whole backup and makes the store of an empty data directory from it. No host may run there.\n" +
			"The tokens of the host that was copied hold again; its open questions are answerable once a host runs.",
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			data, err := dataDir(cmd)
			if err != nil {
				return err
			}
			f, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer f.Close()
			if err := logstore.Restore(cmd.Context(), f, data); err != nil {
				return fmt.Errorf("restore %s: %w", args[0], err)
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "restored into %s\n", data)
			return nil
		},
	}
	hostFlags(c)
	return c
}

func newVerify() *cobra.Command {
	return &cobra.Command{
		Use:   "verify DIR|FILE",
		Short: "Read everything in a data directory or a backup and say what is missing",
		Long: "Reads every record against its checksum and folds every log from its first event. It repairs nothing.\n" +
			"A directory must have no running host: take a backup of that and verify it.\n" +
			"The exit code is 0 when nothing is missing and 6 when something is; an open turn is no fault.",
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			info, err := os.Stat(args[0])
			if err != nil {
				return err
			}
			if info.IsDir() {
				return verify(args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			// Beside the backup there is room for what is in it; a host's own
			// directory stays untouched.
			dir, err := os.MkdirTemp(filepath.Dir(args[0]), ".verify")
			if err != nil {
				return err
			}
			return errors.Join(verifyBackup(cmd, args[0], dir), os.RemoveAll(dir))
		},
	}
}

func verifyBackup(cmd *cobra.Command, name, dir string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	switch err := logstore.Restore(cmd.Context(), f, dir); {
	case errors.Is(err, logstore.ErrBadBackup):
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: %v\n", name, err)
		return codeError(exitMissing)
	case err != nil:
		return err
	}
	return verify(dir, cmd.OutOrStdout(), cmd.ErrOrStderr())
}

// verify prints a line for each session and ends with exitMissing when there is
// something to report.
func verify(dir string, out, report io.Writer) (err error) {
	store, err := logstore.Open(dir, logstore.Options{ReadOnly: true, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	whole, err := store.Verify()
	if err != nil {
		return err
	}
	var sessions, events, faults int64
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tEVENTS\tOPEN\tCONTINUED\tQUEUED\tSTATE\tTITLE")
	err = session.Check(store, func(f session.Finding) error {
		state := "whole"
		switch {
		case f.Fault != nil:
			faults++
			state = "MISSING from " + fmt.Sprint(f.Fault.Seq) + ": " + clean(f.Fault.Reason)
		case f.TurnOpen:
			state = "whole, turn open"
		}
		sessions, events = sessions+1, events+f.Events
		_, err := fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%s\t%s\n", clean(f.ID), f.Events, f.Open, f.Continued, f.Queued, state, clean(f.Title))
		return err
	})
	if err = errors.Join(err, w.Flush()); err != nil {
		return err
	}
	if missing := whole.Missing(); missing != "" || faults > 0 {
		if whole.Cause != "" {
			fmt.Fprintf(report, "the store does not open with full checks: %s\n", clean(whole.Cause))
		}
		fmt.Fprintf(report, "%s\n%d of %d sessions are not whole\n", missing, faults, sessions)
		return codeError(exitMissing)
	}
	fmt.Fprintf(report, "%d sessions, %d events: nothing is missing\n", sessions, events)
	return nil
}
