package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"meanwhile/host/jsonrpc"
)

// errEnough ends a stream that gave what the command wanted.
var errEnough = errors.New("enough")

type sessionRow struct {
	ID        string            `json:"id"`
	Title     string            `json:"title"`
	Status    string            `json:"status"`
	Active    []json.RawMessage `json:"active"`
	Queued    []json.RawMessage `json:"queued"`
	UpdatedAt int64             `json:"updatedAt"`
}

func newSessions() *cobra.Command {
	c := &cobra.Command{
		Use:   "sessions",
		Short: "List the sessions of the running host",
		Args:  exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withHost(cmd, func(ctx context.Context, c *jsonrpc.Conn) error {
				var list struct {
					Sessions []sessionRow `json:"sessions"`
				}
				err := c.Stream(ctx, "host/follow", map[string]any{}, func(item json.RawMessage) error {
					if err := json.Unmarshal(item, &list); err != nil {
						return err
					}
					return errEnough
				})
				if !errors.Is(err, errEnough) {
					return err
				}
				w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 4, 2, ' ', 0)
				fmt.Fprintln(w, "ID\tSTATUS\tOPEN\tQUEUED\tUPDATED\tTITLE")
				for _, s := range list.Sessions {
					fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s\n", s.ID, clean(s.Status), len(s.Active), len(s.Queued), time.UnixMilli(s.UpdatedAt).Format(time.DateTime), clean(s.Title))
				}
				return w.Flush()
			})
		},
	}
	hostFlags(c)
	return c
}

func newExport() *cobra.Command {
	c := &cobra.Command{
		Use:   "export SESSION",
		Short: "Print a session's log as JSON lines",
		Args:  exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withHost(cmd, func(ctx context.Context, c *jsonrpc.Conn) error {
				out := bufio.NewWriter(cmd.OutOrStdout())
				if err := export(ctx, c, args[0], out); err != nil {
					return err
				}
				return out.Flush()
			})
		},
	}
	hostFlags(c)
	return c
}

// export writes what the log held when it was asked for.
func export(ctx context.Context, c *jsonrpc.Conn, session string, out *bufio.Writer) error {
	until, last := int64(-2), int64(-1)
	err := c.Stream(ctx, "session/follow", map[string]any{"sessionId": session}, func(raw json.RawMessage) error {
		var item struct {
			Header json.RawMessage   `json:"header"`
			Events []json.RawMessage `json:"events"`
			Seq    int64             `json:"seq"`
		}
		if err := json.Unmarshal(raw, &item); err != nil {
			return err
		}
		if item.Header != nil {
			until = item.Seq
			if err := writeLine(out, item.Header); err != nil {
				return err
			}
		}
		for _, e := range item.Events {
			if err := writeLine(out, e); err != nil {
				return err
			}
			last++
			if last == until {
				break
			}
		}
		if last >= until {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

func writeLine(out *bufio.Writer, doc []byte) error {
	var line bytes.Buffer
	if err := json.Compact(&line, doc); err != nil {
		return err
	}
	line.WriteByte('\n')
	_, err := out.Write(line.Bytes())
	return err
}

func join(items []string) string {
	return strings.Join(items, " ")
}
