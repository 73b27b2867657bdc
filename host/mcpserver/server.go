package mcpserver

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"meanwhile/host/internal/id"
)

// Host makes the calls of an agent on the running host. Errors of the host are
// *jsonrpc.Error of this program's jsonrpc.
type Host interface {
	Call(ctx context.Context, method string, params, result any) error
}

// desk is what is known of one agent beside the host's own record.
type desk struct {
	mu   sync.Mutex
	tray tray
	memo memo
	// writing is held while a result goes out and is noted: a client can read
	// the last byte, and call again, before the write returns.
	writing sync.RWMutex
	// serving holds the calls of HTTP requests by the client's own ids, to cancel
	// them by.
	serving map[string][]*request
}

// update is the one way to a desk's state. It must not block or call out.
func (d *desk) update(f func(*tray, *memo)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(&d.tray, &d.memo)
}

// visit is one tool call and the door that it came through.
type visit struct {
	host   Host
	desk   *desk
	call   string // names the call for the tray
	key    string // of the session; "" = by client and directory
	cwd    string
	client string
	hold   time.Duration
	// returns is set where one process calls, so that a call acknowledges what
	// the calls before it brought.
	returns bool
	// ends is the request that the call came in, where there is one: the older
	// protocol does not end a call with it.
	ends context.Context
	// offer lets the session's questions be shown as forms; nil: they are not.
	offer func(sessionID string)

	sessionID string
}

// door finds the visit of a tool call.
type door func(ctx context.Context, req *mcp.CallToolRequest) *visit

// newServer makes the tools for a door.
func newServer(version string, enter door, log *slog.Logger) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "meanwhile", Title: "Meanwhile", Version: version}, &mcp.ServerOptions{
		Instructions: instructions,
		Logger:       log,
		// No logging: a result says all there is.
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	for _, t := range tools() {
		s.AddTool(t.spec, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return serve(ctx, req, enter(ctx, req), t.run)
		})
	}
	return s
}

// outcome is what a tool has to say: one sentence or more for the model, and the
// members of its structured result.
type outcome struct {
	text string
	data any
	// message is what the outcome itself hands over, as the tray keeps it.
	message *message
}

type run func(ctx context.Context, v *visit, args json.RawMessage) (outcome, error)

// serve runs one tool call: what came before is acknowledged, the tool runs,
// and what waits rides along.
func serve(ctx context.Context, req *mcp.CallToolRequest, v *visit, do run) (*mcp.CallToolResult, error) {
	if v.ends != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(v.ends, cancel)()
	}
	args := req.Params.Arguments
	if len(args) > bodyMax {
		return refused(&toolError{"TOO_LARGE", "", "the arguments are over 1 MiB: ask less at once"}), nil
	}
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	stop := progress(ctx, req, v.hold)
	out, err := v.run(ctx, do, args)
	stop() // from here on, what goes out for this call is its result
	if ctx.Err() != nil {
		// Nobody reads the result of a cancelled call: what it would have brought
		// goes on the next one.
		v.keep(out)
		return nil, context.Cause(ctx)
	}
	ms := v.claim(ctx)
	v.keep(out)
	v.desk.update(func(t *tray, _ *memo) { t.put(time.Now(), ms...); ms = t.load(time.Now(), v.call) })
	if ctx.Err() != nil {
		v.desk.update(func(t *tray, _ *memo) { t.back(v.call) })
		return nil, context.Cause(ctx)
	}
	if out.message != nil {
		ms = without(ms, out.message.ID) // the outcome says it already
	}
	if err != nil {
		r := refused(asToolError(err))
		r.Content = append(r.Content, textOf(messagesText(ms))...)
		return r, nil
	}
	return result(out, ms)
}

// run opens the session, acknowledges and runs the tool.
func (v *visit) run(ctx context.Context, do run, args json.RawMessage) (outcome, error) {
	if err := v.open(ctx); err != nil {
		return outcome{}, err
	}
	if v.returns {
		var due []string
		v.desk.writing.Lock()
		v.desk.update(func(t *tray, _ *memo) { due = t.due() })
		v.desk.writing.Unlock()
		if _, err := v.admit(ctx, due); err != nil {
			return outcome{}, err
		}
	}
	return do(ctx, v, args)
}

// keep puts what an outcome hands over into the tray.
func (v *visit) keep(out outcome) {
	if out.message != nil {
		v.desk.update(func(t *tray, _ *memo) { t.put(time.Now(), *out.message) })
	}
}

// progress tells a client that asked for it that the call goes on.
func progress(ctx context.Context, req *mcp.CallToolRequest, hold time.Duration) (stop func()) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for n := 1; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			// A client that left is seen by its call, not here.
			_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: token, Progress: float64(n) * progressEvery.Seconds(), Total: hold.Seconds(),
				Message: "waiting for the user's answer",
			})
		}
	})
	return func() { cancel(); done.Wait() }
}

// newID names a call that its door has no name for.
func newID() string { return id.New() }
