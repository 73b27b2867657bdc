package cli

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"meanwhile/host/jsonrpc"
	"meanwhile/host/qr"
)

func newLogin() *cobra.Command {
	var draw bool
	c := &cobra.Command{
		Use:   "login",
		Short: "Print a fresh link that signs a browser in, once",
		Args:  exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withHost(cmd, func(ctx context.Context, c *jsonrpc.Conn) error {
				var out struct {
					URL string `json:"url"`
				}
				if err := c.Call(ctx, "login/create", map[string]any{}, &out); err != nil {
					return err
				}
				fmt.Fprintln(cmd.OutOrStdout(), out.URL)
				if !draw {
					return nil
				}
				code, err := qr.Encode(out.URL)
				if err != nil {
					return err
				}
				fmt.Fprint(cmd.OutOrStdout(), code.Terminal())
				if u, err := url.Parse(out.URL); err == nil && loopback(u.Hostname()) {
					fmt.Fprintln(cmd.ErrOrStderr(), "This address works on this machine alone. For a phone, start the host with --public-url, see docs/phone.md.")
				}
				return nil
			})
		},
	}
	c.Flags().BoolVar(&draw, "qr", false, "draw the link as a QR code too, for a phone")
	hostFlags(c)
	return c
}

func loopback(name string) bool {
	ip := net.ParseIP(name)
	return name == "localhost" || ip != nil && ip.IsLoopback()
}

func newToken() *cobra.Command {
	return group(&cobra.Command{Use: "token", Short: "Create, list and revoke access tokens"},
		newTokenCreate(), newTokenList(), newTokenRevoke())
}

func newTokenCreate() *cobra.Command {
	var scopes []string
	var label string
	c := &cobra.Command{
		Use:   "create --scope SCOPE --label LABEL",
		Short: "Create a token and print it, once",
		Long: "Creates a token and prints it; the host keeps only its hash.\n" +
			"Scopes: read, answer, ask, admin. No token holds both ask and answer.",
		Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(scopes) == 0 || label == "" {
				return &usageError{fmt.Errorf("give --scope and --label, such as --scope ask --label build-bot")}
			}
			return withHost(cmd, func(ctx context.Context, c *jsonrpc.Conn) error {
				var out struct {
					Token string `json:"token"`
					ID    string `json:"id"`
				}
				if err := c.Call(ctx, "token/create", map[string]any{"label": label, "scopes": scopes}, &out); err != nil {
					return err
				}
				fmt.Fprintf(cmd.ErrOrStderr(), "token %s, shown this once:\n", out.ID)
				fmt.Fprintln(cmd.OutOrStdout(), out.Token)
				return nil
			})
		},
	}
	c.Flags().StringSliceVar(&scopes, "scope", nil, "what it may do: read, answer, ask, admin (repeat or separate by commas)")
	c.Flags().StringVar(&label, "label", "", "who holds it, as others see it")
	hostFlags(c)
	return c
}

func newTokenList() *cobra.Command {
	c := &cobra.Command{
		Use:   "list",
		Short: "List the live tokens",
		Args:  exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withHost(cmd, func(ctx context.Context, c *jsonrpc.Conn) error {
				var out struct {
					Tokens []struct {
						ID      string   `json:"id"`
						Label   string   `json:"label"`
						Scopes  []string `json:"scopes"`
						Created int64    `json:"createdAt"`
						Login   bool     `json:"login"`
					} `json:"tokens"`
				}
				if err := c.Call(ctx, "token/list", map[string]any{}, &out); err != nil {
					return err
				}
				w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 4, 2, ' ', 0)
				fmt.Fprintln(w, "ID\tLABEL\tSCOPES\tCREATED")
				for _, t := range out.Tokens {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", t.ID, clean(t.Label), join(t.Scopes), time.UnixMilli(t.Created).Format(time.DateTime))
				}
				return w.Flush()
			})
		},
	}
	hostFlags(c)
	return c
}

func newTokenRevoke() *cobra.Command {
	c := &cobra.Command{
		Use:   "revoke ID",
		Short: "Revoke a token and drop its connections",
		Args:  exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withHost(cmd, func(ctx context.Context, c *jsonrpc.Conn) error {
				return c.Call(ctx, "token/revoke", map[string]any{"id": args[0]}, nil)
			})
		},
	}
	hostFlags(c)
	return c
}
