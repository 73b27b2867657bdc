package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"meanwhile/host/app"
	"meanwhile/host/config"
	"meanwhile/host/jsonrpc"
)

// callWithin bounds one command's talk with the host.
const callWithin = 30 * time.Second

// hostFlags adds the flags that say which host a command talks to.
func hostFlags(c *cobra.Command) {
	c.Flags().String("data", "", "data directory of the host (default $XDG_DATA_HOME/meanwhile)")
	c.Flags().String("config", "", "settings file")
}

// sameHost is the flags by which a further command finds the host of this one.
func sameHost(c *cobra.Command) string {
	words := ""
	for _, name := range []string{"data", "config"} {
		if f := c.Flags().Lookup(name); f != nil && f.Changed {
			words += " --" + name + " " + shellWord(f.Value.String())
		}
	}
	return words
}

// withHost runs f with a connection to the host of the data directory.
func withHost(cmd *cobra.Command, f func(ctx context.Context, c *jsonrpc.Conn) error) error {
	data, err := dataDir(cmd)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), callWithin)
	defer cancel()
	conn, err := dial(ctx, data)
	if err != nil {
		return err
	}
	defer conn.Wait()
	defer conn.Close(jsonrpc.CloseNormal, "done")
	return plainError(f(ctx, conn))
}

// dataDir is the data directory of the host that the flags name.
func dataDir(cmd *cobra.Command) (string, error) {
	src := config.Sources{Flags: map[string]string{}}
	if flag := cmd.Flags().Lookup("data"); flag.Changed {
		src.Flags["data"] = flag.Value.String()
	}
	src.File = cmd.Flags().Lookup("config").Value.String()
	return config.DataDir(src)
}

// dial connects to the host that holds a data directory, with what its socket
// allows.
func dial(ctx context.Context, data string) (*jsonrpc.Conn, error) {
	conn, _, err := dialAs(ctx, data, "", nil)
	return conn, err
}

// greeting is what the host says to a client.
type greeting struct {
	ClientID string   `json:"clientId"`
	Scopes   []string `json:"scopes"`
}

// dialAs connects with what a token allows instead, unless it is empty. h serves
// what the host calls.
func dialAs(ctx context.Context, data, token string, h jsonrpc.Handler) (*jsonrpc.Conn, greeting, error) {
	var hello greeting
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", app.SocketPath(data))
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return nil, hello, fmt.Errorf("no host is running on %s: start it with `meanwhile serve`, or name its directory with --data", data)
	case err != nil:
		return nil, hello, fmt.Errorf("reach the host of %s: %w", data, err)
	}
	conn := jsonrpc.NewConn(jsonrpc.Lines(c), h, jsonrpc.Options{})
	params := map[string]any{"protocol": 1, "client": map[string]string{"name": "meanwhile", "version": app.Version}}
	if token != "" {
		params["token"] = token
	}
	if err := conn.Call(ctx, "initialize", params, &hello); err != nil {
		conn.Close(jsonrpc.CloseNormal, "")
		conn.Wait()
		return nil, hello, fmt.Errorf("greet the host of %s: %w", data, plainError(err))
	}
	return conn, hello, nil
}

// plainError shows the host's words alone.
func plainError(err error) error {
	var refused *jsonrpc.Error
	if !errors.As(err, &refused) {
		return err
	}
	var data struct {
		Code  string `json:"code"`
		Field string `json:"field"`
	}
	_ = json.Unmarshal(refused.Data, &data) // without data the message stands alone
	if data.Code != "" {
		return fmt.Errorf("%s: %s", data.Code, clean(refused.Message))
	}
	return errors.New(clean(refused.Message))
}
