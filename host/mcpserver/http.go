package mcpserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// desksMax bounds the agents remembered; the one unused for longest goes.
	desksMax = 1024
	// headerMax bounds a key and a holder, in bytes.
	headerMax = 200
	// writeWithin bounds each write: a client that does not read must not hold up
	// its other calls.
	writeWithin = time.Minute
)

// Headers of this door. The first three are also taken from the address, as
// key, holder and client, by clients that can set no header.
const (
	headerKey    = "Meanwhile-Key"
	headerHolder = "Meanwhile-Holder"
	headerClient = "Meanwhile-Client"
	headerHold   = "Meanwhile-Hold" // seconds
)

// HTTP speaks MCP over HTTP, both generations of the protocol: each request
// stands for itself.
type HTTP struct {
	handler *mcp.StreamableHTTPHandler

	mu    sync.Mutex
	desks map[string]*desk
	order []string // of use, the newest last
}

// NewHTTP makes the door. log nil: silent.
func NewHTTP(version string, log *slog.Logger) *HTTP {
	h := &HTTP{desks: map[string]*desk{}}
	s := newServer(version, enterHTTP, log)
	h.handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{
		Stateless: true, Logger: log, MaxRequestBodyBytes: bodyMax, PropagateRequestCancellation: true,
		// The route's gate has checked Host and Origin, for more names than the
		// SDK knows.
		DisableLocalhostProtection: true,
	})
	return h
}

type requestKey struct{}

// request is what the tools of one HTTP request share.
type request struct {
	ctx     context.Context // ends when the client goes away or cancels, in either generation
	cancel  context.CancelFunc
	host    Host
	desk    *desk
	call    string
	key     string
	client  string
	hold    time.Duration
	returns bool
}

func enterHTTP(ctx context.Context, req *mcp.CallToolRequest) *visit {
	r, ok := ctx.Value(requestKey{}).(*request)
	if !ok {
		panic("mcpserver: a tool call outside of a request")
	}
	v := &visit{host: r.host, desk: r.desk, call: r.call, key: r.key, client: r.client, returns: r.returns, ends: r.ctx}
	if c := req.ClientInfo(); c != nil && v.client == "" {
		v.client = c.Name
	}
	v.hold = holdOf(v.client, true, r.hold)
	return v
}

// Serve answers one admitted request. owner tells agents of different tokens
// apart; host makes their calls.
func (h *HTTP) Serve(w http.ResponseWriter, r *http.Request, owner string, host Host) {
	in := &request{host: host, call: newID()}
	var holder string
	for _, p := range []struct {
		to          *string
		header, arg string
	}{{&in.key, headerKey, "key"}, {&holder, headerHolder, "holder"}, {&in.client, headerClient, "client"}} {
		*p.to = r.Header.Get(p.header)
		if *p.to == "" {
			*p.to = r.URL.Query().Get(p.arg)
		}
		if len(*p.to) > headerMax {
			http.Error(w, p.header+" is over "+strconv.Itoa(headerMax)+" bytes", http.StatusBadRequest)
			return
		}
	}
	if text := r.Header.Get(headerHold); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > int(HoldMax/time.Second) {
			http.Error(w, headerHold+": send whole seconds from 1 to "+strconv.Itoa(int(HoldMax/time.Second)), http.StatusBadRequest)
			return
		}
		in.hold = time.Duration(n) * time.Second
	}
	in.desk, in.returns = h.desk(owner, in.key, in.client, holder), holder != ""
	body, ok := readBody(w, r)
	if !ok {
		return
	}
	name, cancelled := peek(body)
	if cancelled != "" {
		in.desk.cancel(cancelled)
	}
	if in.returns {
		// One process names its calls once, so a cancellation that crossed with
		// the result finds what that carried.
		if name != "" {
			in.call = name
		}
		in.desk.update(func(t *tray, _ *memo) { t.back(cancelled) })
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	in.ctx, in.cancel = ctx, cancel
	if name != "" {
		in.desk.enter(name, in)
		defer in.desk.leave(name, in)
	}

	out := &watchedWriter{ResponseWriter: w, desk: in.desk, call: in.call}
	r = r.WithContext(context.WithValue(r.Context(), requestKey{}, in))
	r.Body = io.NopCloser(bytes.NewReader(body))
	h.handler.ServeHTTP(out, r)
	if out.err != nil || http.NewResponseController(w).Flush() != nil {
		in.desk.update(func(t *tray, _ *memo) { t.back(in.call) })
	}
}

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyMax))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		http.Error(w, "the body is over "+strconv.Itoa(bodyMax)+" bytes", http.StatusRequestEntityTooLarge)
	case err != nil:
		http.Error(w, "the body did not arrive whole", http.StatusBadRequest)
	}
	return body, err == nil
}

// peek reads the id of a tool call, or the id that a cancellation names. The
// older protocol cancels by a request of its own, which the SDK cannot bring to
// the call: each request is a session to it. What is neither is left to the SDK.
func peek(body []byte) (call, cancelled string) {
	m, err := sdk.DecodeMessage(body)
	r, ok := m.(*sdk.Request)
	if err != nil || !ok {
		return "", ""
	}
	switch r.Method {
	case methodCall:
		return nameOf(r.ID), ""
	case methodCancelled:
		return "", cancelledOf(r)
	}
	return "", ""
}

func (d *desk) enter(name string, in *request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.serving == nil {
		d.serving = map[string][]*request{}
	}
	d.serving[name] = append(d.serving[name], in)
}

func (d *desk) leave(name string, in *request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.serving[name] = slices.DeleteFunc(d.serving[name], func(other *request) bool { return other == in })
	if len(d.serving[name]) == 0 {
		delete(d.serving, name)
	}
}

// cancel ends the call of an id. Clients that share a desk may use one id twice
// at once; then nobody knows which is meant, and both go on.
func (d *desk) cancel(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if calls := d.serving[name]; len(calls) == 1 {
		calls[0].cancel()
	}
}

// desk finds an agent's desk, or makes it.
func (h *HTTP) desk(parts ...string) *desk {
	name := ""
	for _, p := range parts {
		name += strconv.Itoa(len(p)) + ":" + p
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	d := h.desks[name]
	if d == nil {
		d = &desk{}
		h.desks[name] = d
	}
	for i, other := range h.order {
		if other == name {
			h.order = append(h.order[:i], h.order[i+1:]...)
			break
		}
	}
	h.order = append(h.order, name)
	if len(h.order) > desksMax {
		delete(h.desks, h.order[0])
		h.order = h.order[1:]
	}
	return d
}

// watchedWriter notes the writes that carry a call's result: those after its
// messages were put on it.
type watchedWriter struct {
	http.ResponseWriter
	desk *desk
	call string
	err  error
}

func (w *watchedWriter) Write(b []byte) (int, error) {
	w.desk.writing.RLock()
	defer w.desk.writing.RUnlock()
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(writeWithin))
	n, err := w.ResponseWriter.Write(b)
	if err != nil {
		w.err = err
		return n, err
	}
	w.desk.update(func(t *tray, _ *memo) { t.wrote(w.call) })
	return n, nil
}

// Unwrap lets a ResponseController reach the server's own writer.
func (w *watchedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
