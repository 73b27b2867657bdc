package cli

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"meanwhile/shared/event"
	"meanwhile/shared/event/value"
	"meanwhile/shared/projection"
)

func newInbox() *cobra.Command {
	var f askFlags
	var ack bool
	c := &cobra.Command{
		Use:   "inbox",
		Short: "Print what waits for the agent of a session",
		Long: "Prints late answers, and results that no call has brought, oldest first. They come again until they are\n" +
			"acknowledged: with --ack they are, once they were printed whole. An empty inbox prints nothing and ends with 0.",
		Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd, true, func(w *waiter) error { return w.inbox(ack) })
		},
	}
	c.Flags().BoolVar(&ack, "ack", false, "acknowledge what was printed: it does not come again")
	f.add(c)
	return c
}

func (w *waiter) inbox(ack bool) error {
	var got struct {
		Messages []json.RawMessage `json:"messages"`
	}
	if err := w.host.Call(w.ctx, "inbox/claim", map[string]any{"sessionId": w.session, "holder": w.holder}, &got); err != nil {
		return w.failed(err)
	}
	var ids []string
	for _, body := range got.Messages {
		v, err := value.Parse(body)
		if err != nil {
			return fmt.Errorf("a message of the host: %w", err)
		}
		m, err := event.MessageOf(v)
		if err != nil {
			return fmt.Errorf("a message of the host: %w", err)
		}
		if w.flags.json {
			err = printSafe(w.cmd.OutOrStdout(), body)
		} else {
			err = printMessage(w.cmd.OutOrStdout(), m)
		}
		if err != nil {
			return err
		}
		ids = append(ids, m.ID)
	}
	if !ack || len(ids) == 0 {
		return nil
	}
	if err := w.host.Call(w.ctx, "inbox/admit", map[string]any{"sessionId": w.session, "messageIds": ids}, nil); err != nil {
		return w.failed(err)
	}
	return nil
}

// printMessage writes one message for people. What it is, its source says.
func printMessage(out io.Writer, m event.Message) error {
	head := "message " + clean(m.ID)
	if m.Source.CallID != "" {
		head += ", call " + clean(m.Source.CallID)
	}
	if m.Source.By != "" {
		head += ", by " + clean(m.Source.By)
	}
	if _, err := fmt.Fprintln(out, head); err != nil {
		return err
	}
	if m.Source.Kind != event.SourceUser {
		if doc, err := value.ParseString(m.Text); err == nil {
			if answers, ok := projection.AnswersOf(doc.Get("answers")); ok {
				return printAnswers(out, answers)
			}
		}
	}
	_, err := fmt.Fprintln(out, cleanLines(m.Text))
	return err
}
