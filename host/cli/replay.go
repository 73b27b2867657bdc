package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"meanwhile/shared/event"
	"meanwhile/shared/event/value"
	"meanwhile/shared/projection"
)

// maxLine is the longest line of a log; one event is at most 16 MiB.
const maxLine = 16 << 20

func newReplay() *cobra.Command {
	var view string
	c := &cobra.Command{
		Use:   "replay FILE.jsonl",
		Short: "Print what a log's events amount to, without a host",
		Long: "Folds a log (its header on the first line, then one event on each line) and prints one view as JSON.\n" +
			"FILE may be - for standard input.",
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if view != "userQuestions" && view != "inbox" {
				return &usageError{fmt.Errorf("--view %q is not a view: write userQuestions or inbox", view)}
			}
			in := cmd.InOrStdin()
			if args[0] != "-" {
				f, err := os.Open(args[0])
				if err != nil {
					return err
				}
				defer f.Close()
				in = f
			}
			set, err := foldLog(args[0], in)
			if err != nil {
				return err
			}
			var w value.Writer
			if view == "inbox" {
				set.Inbox.AppendView(&w)
			} else {
				set.Questions.AppendView(&w)
			}
			return printJSON(cmd.OutOrStdout(), w.Bytes())
		},
	}
	c.Flags().StringVar(&view, "view", "userQuestions", "userQuestions or inbox")
	return c
}

// foldLog reads a log; its errors name the line.
func foldLog(name string, in io.Reader) (*projection.Set, error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	var set *projection.Set
	line, next := 0, int64(0)
	at := func(err error) error { return fmt.Errorf("%s:%d: %w", name, line, err) }
	for lines.Scan() {
		line++
		if set == nil {
			h, err := event.ParseHeader(lines.Bytes())
			if err != nil {
				return nil, at(fmt.Errorf("the first line is no header: %w", err))
			}
			set = projection.NewSet(h)
			continue
		}
		e, err := event.ParseEvent(bytes.Clone(lines.Bytes()))
		if err != nil {
			return nil, at(err)
		}
		if e.Seq != next {
			return nil, at(fmt.Errorf("seq is %d and should be %d: an event is missing, repeated or out of order", e.Seq, next))
		}
		next++
		if err := set.Apply(e, nil); err != nil {
			return nil, at(err)
		}
	}
	if err := lines.Err(); err != nil {
		line++
		if errors.Is(err, bufio.ErrTooLong) {
			err = fmt.Errorf("the line is over %d bytes", maxLine)
		}
		return nil, at(err)
	}
	if set == nil {
		return nil, fmt.Errorf("%s: the file is empty: its first line must be a header", name)
	}
	return set, nil
}

// printJSON writes a document for people and programs alike.
func printJSON(w io.Writer, doc []byte) error {
	var out bytes.Buffer
	if err := json.Indent(&out, doc, "", "  "); err != nil {
		return err
	}
	out.WriteByte('\n')
	_, err := w.Write(out.Bytes())
	return err
}
