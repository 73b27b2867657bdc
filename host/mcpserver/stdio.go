package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"meanwhile/host/jsonrpc"
)

const (
	methodCall      = "tools/call"
	methodCancelled = "notifications/cancelled"
	// callMeta names a call for its handler, which the SDK does not do.
	callMeta = "meanwhile/call"
	// lineMax bounds one line. Larger arguments than bodyMax are refused by a
	// result; a line over this ends the process.
	lineMax = 16 << 20
)

// Options of Serve.
type Options struct {
	Host    Host
	Version string
	Key     string        // of the session; "" = by client and directory
	CWD     string        // where the agent works
	Hold    time.Duration // longest that a call stays open; 0 = by the client's limit
	Log     *slog.Logger
	// Answer connects as a client that may answer, with a token for that, and
	// serves the host's calls to it. Nil: no forms are shown.
	Answer func(ctx context.Context, h jsonrpc.Handler) (*jsonrpc.Conn, error)
}

// Serve speaks MCP over a process's standard streams until in ends or ctx does.
func Serve(ctx context.Context, in io.ReadCloser, out io.WriteCloser, o Options) error {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	d := &desk{}
	ctx, cancel := context.WithCancel(ctx)
	forms := newForms(ctx, o)
	if forms != nil {
		defer forms.close()
	}
	defer cancel()
	enter := func(_ context.Context, req *mcp.CallToolRequest) *visit {
		v := &visit{host: o.Host, desk: d, key: o.Key, cwd: o.CWD, returns: true}
		v.call, _ = req.Params.Meta[callMeta].(string)
		if c := req.ClientInfo(); c != nil {
			v.client = c.Name
		}
		v.hold = holdOf(v.client, false, o.Hold)
		if forms != nil && canShow(req) {
			v.offer = func(sessionID string) { forms.offer(sessionID, req.Session) }
		}
		return v
	}
	s := newServer(o.Version, enter, o.Log)
	t := &watched{inner: &mcp.IOTransport{Reader: in, Writer: out, MaxLineLength: lineMax}, desk: d}
	err := s.Run(ctx, t)
	if errors.Is(err, io.EOF) || ctx.Err() != nil {
		return nil
	}
	return err
}

// watched is a transport that sees which results went out, and which calls the
// client cancelled all the same.
type watched struct {
	inner mcp.Transport
	desk  *desk
}

func (w *watched) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := w.inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &watchedConn{Connection: c, desk: w.desk, serving: map[string]bool{}}, nil
}

type watchedConn struct {
	mcp.Connection
	desk *desk

	mu      sync.Mutex
	serving map[string]bool // tool calls without a response yet
}

func (c *watchedConn) Read(ctx context.Context) (sdk.Message, error) {
	m, err := c.Connection.Read(ctx)
	r, ok := m.(*sdk.Request)
	if err != nil || !ok {
		return m, err
	}
	switch r.Method {
	case methodCall:
		name := nameOf(r.ID)
		params, err := withMeta(r.Params, name)
		if err != nil {
			return m, nil // the SDK says what is wrong with it
		}
		r.Params = params
		c.mu.Lock()
		c.serving[name] = true
		c.mu.Unlock()
	case methodCancelled:
		// It may have crossed with the result, which the client then drops.
		name := cancelledOf(r)
		c.desk.update(func(t *tray, _ *memo) { t.back(name) })
	}
	return m, nil
}

func (c *watchedConn) Write(ctx context.Context, m sdk.Message) error {
	r, ok := m.(*sdk.Response)
	if !ok {
		return c.Connection.Write(ctx, m)
	}
	name := nameOf(r.ID)
	c.mu.Lock()
	call := c.serving[name]
	delete(c.serving, name)
	c.mu.Unlock()
	c.desk.writing.RLock()
	defer c.desk.writing.RUnlock()
	err := c.Connection.Write(ctx, m)
	if call {
		c.desk.update(func(t *tray, _ *memo) {
			if err == nil && r.Error == nil {
				t.wrote(name)
			} else {
				t.back(name)
			}
		})
	}
	return err
}

// cancelledOf is the call that a cancellation names; "" when it names none.
func cancelledOf(r *sdk.Request) string {
	var p struct {
		RequestID any `json:"requestId"`
	}
	if json.Unmarshal(r.Params, &p) != nil {
		return ""
	}
	id, err := sdk.MakeID(p.RequestID)
	if err != nil || !id.IsValid() {
		return ""
	}
	return nameOf(id)
}

// nameOf is an id as a name; 1 and "1" are two.
func nameOf(id sdk.ID) string { return fmt.Sprintf("%T %v", id.Raw(), id.Raw()) }

func withMeta(params json.RawMessage, name string) (json.RawMessage, error) {
	var p, meta map[string]json.RawMessage
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, err
	}
	if raw, ok := p["_meta"]; ok {
		if err := json.Unmarshal(raw, &meta); err != nil {
			return nil, err
		}
	}
	if p == nil {
		return nil, errors.New("no params")
	}
	if meta == nil {
		meta = map[string]json.RawMessage{}
	}
	var err error
	if meta[callMeta], err = json.Marshal(name); err != nil {
		return nil, err
	}
	if p["_meta"], err = json.Marshal(meta); err != nil {
		return nil, err
	}
	return json.Marshal(p)
}
