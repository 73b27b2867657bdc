package hosttest

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"meanwhile/host/app"
	"meanwhile/host/config"
	"meanwhile/host/gateway/wsconn"
	"meanwhile/host/jsonrpc"
)

// within bounds every wait of a test.
const within = 30 * time.Second

// Options of a host. The zero value has no model.
type Options struct {
	Script string               // of the model, see package replay; "" = no model
	Change func(*config.Config) // further settings
}

// Host is a host under test.
type Host struct {
	t      testing.TB
	config config.Config
	app    *app.App
}

// Start runs a host on a new data directory and a free port.
func Start(t testing.TB, o Options) *Host {
	t.Helper()
	// Not t.TempDir: the name of a socket has little room for that of a test.
	dir, err := os.MkdirTemp("", "mw")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove the data directory: %v", err)
		}
	})
	flags := map[string]string{"listen": "127.0.0.1:0", "data": filepath.Join(dir, "data"), "bash.dir": dir, "ask.mode": "timed"}
	if o.Script != "" {
		flags["model.script"] = filepath.Join(dir, "script.json")
		if err := os.WriteFile(flags["model.script"], []byte(o.Script), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := config.Load(config.Sources{Flags: flags, Env: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	if o.Change != nil {
		o.Change(&cfg)
	}
	h := &Host{t: t, config: cfg}
	h.start()
	t.Cleanup(h.Stop)
	return h
}

func (h *Host) start() {
	h.t.Helper()
	a, err := app.Start(context.Background(), h.config, slog.New(slog.NewTextHandler(h.t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		h.t.Fatal(err)
	}
	h.app = a
}

// Stop stops the host as a signal would. It may be stopped already.
func (h *Host) Stop() {
	h.t.Helper()
	if h.app == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	if err := h.app.Close(ctx); err != nil {
		h.t.Errorf("stop the host: %v", err)
	}
	select {
	case err := <-h.app.Failed():
		h.t.Errorf("the host failed: %v", err)
	default:
	}
	h.app = nil
}

// Restart stops the host and starts another on its data.
func (h *Host) Restart() {
	h.t.Helper()
	h.Stop()
	h.start()
}

// App is the running host.
func (h *Host) App() *app.App { return h.app }

// Config is what the host runs with.
func (h *Host) Config() config.Config { return h.config }

// URL is a path on the host.
func (h *Host) URL(path string) string { return "http://" + h.app.Address().String() + path }

// Token makes a token over the Unix socket and returns its text and id.
func (h *Host) Token(label string, scopes ...string) (text, id string) {
	h.t.Helper()
	var out struct{ Token, ID string }
	h.Local().Call("token/create", map[string]any{"label": label, "scopes": scopes}, &out)
	return out.Token, out.ID
}

// Local connects over the Unix socket, as the command line does.
func (h *Host) Local() *Client {
	h.t.Helper()
	c, err := net.Dial("unix", app.SocketPath(h.config.Data))
	if err != nil {
		h.t.Fatal(err)
	}
	return h.greet(jsonrpc.Lines(c), "")
}

// Connect makes a token with these scopes and connects with it.
func (h *Host) Connect(label string, scopes ...string) *Client {
	h.t.Helper()
	token, _ := h.Token(label, scopes...)
	return h.ConnectWith(token)
}

// ConnectWith connects over the WebSocket as the page does: with its origin,
// and the token in initialize.
func (h *Host) ConnectWith(token string) *Client {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	transport, err := wsconn.Dial(ctx, "ws://"+h.app.Address().String()+"/rpc", wsconn.DialOptions{Header: http.Header{"Origin": {h.URL("")}}})
	if err != nil {
		h.t.Fatal(err)
	}
	return h.greet(transport, token)
}

func (h *Host) greet(t jsonrpc.Transport, token string) *Client {
	h.t.Helper()
	c := &Client{t: h.t, asks: make(chan *Ask, 100), notices: make(chan Notice, 1000)}
	c.Conn = jsonrpc.NewConn(t, jsonrpc.HandlerFunc(c.serve), jsonrpc.Options{})
	h.t.Cleanup(c.Leave)
	params := map[string]any{"protocol": 1, "client": map[string]string{"name": "test", "version": "0"}}
	if token != "" {
		params["token"] = token
	}
	var out struct {
		ClientID string `json:"clientId"`
	}
	c.Call("initialize", params, &out)
	c.ID = out.ClientID
	return c
}

// Post sends one call as a program without a connection does and returns the
// status and the body.
func (h *Host) Post(token, method string, params any) (int, json.RawMessage) {
	h.t.Helper()
	raw, err := jsonrpc.Encode(params)
	if err != nil {
		h.t.Fatal(err)
	}
	return h.do(http.MethodPost, "/rpc", jsonrpc.EncodeCall(jsonrpc.IntID(1), method, raw), map[string]string{
		"Authorization": "Bearer " + token, "Content-Type": "application/json",
	})
}
