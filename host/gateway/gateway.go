package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"meanwhile/host/internal/id"
	"meanwhile/host/jsonrpc"
)

// Protocol is the number of the wire protocol spoken here.
const Protocol = 1

// Defaults of Config, and limits.
const (
	DefaultMaxClients  = 256
	DefaultMaxEvents   = 200_000
	DefaultMaxLag      = 1 << 16
	DefaultMaxCalls    = 4096
	DefaultInitTimeout = 10 * time.Second
	// MaxEventParams leaves room in a frame for what the gateway adds.
	MaxEventParams = jsonrpc.MaxFrame - 64<<10
)

// Close codes of this protocol.
const (
	CloseProtocol = 4400 // another protocol number
	CloseToken    = 4401 // no token, or one that is not good
)

// Codes of the gateway's own errors.
const (
	CodeNext         = "NEXT" // a delivery's error that delegates
	CodeMissingScope = "MISSING_SCOPE"
	CodeNeedsSocket  = "STREAM_NEEDS_SOCKET"
	CodeBadToken     = "BAD_TOKEN"
	CodeStopping     = "HOST_STOPPING"
	CodeProtocol     = "PROTOCOL"
	CodeTooLarge     = "EVENT_TOO_LARGE"
	CodeTooMany      = "TOO_MANY_EVENTS"
)

// Error is a refusal by the gateway itself.
type Error struct {
	Code    string
	Field   string // for CodeMissingScope: the scope
	Message string
}

func (e *Error) Error() string { return e.Message }

// Scopes are what a principal may do, by name.
type Scopes []string

// Has reports whether scope is held; everyone holds the empty scope.
func (s Scopes) Has(scope string) bool { return scope == "" || slices.Contains(s, scope) }

// Principal is who stands behind a connection or a request.
type Principal struct {
	TokenID string
	Label   string
	Scopes  Scopes
}

// Authenticator turns a token into a principal.
type Authenticator interface {
	Authenticate(ctx context.Context, token string) (Principal, error)
}

// Module names the client module this host serves.
type Module struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

// Config of a gateway. Zero values have defaults; a nil Auth refuses every
// token, which leaves principals that Accept is given.
type Config struct {
	Version string
	Module  Module
	Auth    Authenticator
	// Live reports whether a token is still good. It is asked once DropToken
	// can see the client, so that a token revoked during initialize is not
	// missed. Nil: every token is.
	Live func(tokenID string) bool
	// Wire turns an error of a route into what is sent; a *jsonrpc.Fault goes
	// as it is and is not asked about. A nil function, or a nil result, falls
	// back: an *Error goes as CodeApplication with its code as data, any other
	// as an internal error.
	Wire func(error) *jsonrpc.Fault
	// SettleScope is the scope of remote/settle, beside the event's own.
	SettleScope string
	NewID       func() string // nil: random ids
	Log         *slog.Logger  // nil: none

	MaxClients  int           // connections; 0: DefaultMaxClients
	MaxEvents   int           // pending events; 0: DefaultMaxEvents
	MaxLag      int           // settlements a client may be behind; 0: DefaultMaxLag
	MaxCalls    int           // calls in flight per client; 0: DefaultMaxCalls
	InitTimeout time.Duration // 0: DefaultInitTimeout
	// Conn holds the connection's other limits and its keep-alive times.
	Conn jsonrpc.Options
}

// Caller is who a route serves.
type Caller struct {
	ClientID string // empty for a request without a connection
	Name     string // what the client calls itself
	Label    string
	TokenID  string
	Scopes   Scopes
	Done     <-chan struct{} // closed when the connection has ended
}

// Unary serves one call. Its result is encoded as JSON.
type Unary func(ctx context.Context, c *Caller, params json.RawMessage) (any, error)

// Streaming serves one stream: items through send, then the response, which is
// an empty object.
type Streaming func(ctx context.Context, c *Caller, params json.RawMessage, send func(any) error) error

type route struct {
	scope  string
	unary  Unary
	stream Streaming
}

// Gateway is the runtime. Routes are set before the first Accept or Post.
type Gateway struct {
	cfg    Config
	routes map[string]route

	accepts sync.WaitGroup // Accept calls under way; added to under update

	mu sync.Mutex
	st state // only through update
}

// New returns a gateway without routes of its own but initialize, ping and
// remote/settle.
func New(cfg Config) *Gateway {
	limit := func(v *int, def int) {
		if *v == 0 {
			*v = def
		}
	}
	limit(&cfg.MaxClients, DefaultMaxClients)
	limit(&cfg.MaxEvents, DefaultMaxEvents)
	limit(&cfg.MaxLag, DefaultMaxLag)
	limit(&cfg.MaxCalls, DefaultMaxCalls)
	if cfg.InitTimeout == 0 {
		cfg.InitTimeout = DefaultInitTimeout
	}
	if cfg.NewID == nil {
		cfg.NewID = id.New
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	g := &Gateway{cfg: cfg, routes: map[string]route{}, st: newState()}
	g.Handle(methodSettle, cfg.SettleScope, g.settleRoute)
	return g
}

// Handle adds a route for calls. The empty scope lets every principal in. A
// method that has a route already is a mistake in the program.
func (g *Gateway) Handle(method, scope string, f Unary) {
	g.add(method, route{scope: scope, unary: f})
}

// Stream adds a route for streams.
func (g *Gateway) Stream(method, scope string, f Streaming) {
	g.add(method, route{scope: scope, stream: f})
}

func (g *Gateway) add(method string, r route) {
	if _, taken := g.routes[method]; taken || method == methodInit || method == methodPing {
		panic(fmt.Sprintf("gateway: method %q has a route already", method))
	}
	g.routes[method] = r
}

// Route describes one method that clients may call.
type Route struct {
	Method, Scope string
	Stream        bool
}

// Routes lists the table, in the order of the methods' names.
func (g *Gateway) Routes() []Route {
	list := make([]Route, 0, len(g.routes))
	for method, r := range g.routes {
		list = append(list, Route{Method: method, Scope: r.scope, Stream: r.stream != nil})
	}
	slices.SortFunc(list, func(a, b Route) int { return strings.Compare(a.Method, b.Method) })
	return list
}

// update is the one way to the state. It must not block or call out.
func (g *Gateway) update(f func(*state)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f(&g.st)
}

// Counts returns how many clients are ready and how many events pending.
func (g *Gateway) Counts() (clients, events int) {
	g.update(func(s *state) { clients, events = len(s.clients), len(s.byID) })
	return clients, events
}

// DropToken ends the connections and posted calls of a token that is no longer
// good. Connections that are not ready yet may be about to use it: they are sent
// to connect again.
func (g *Gateway) DropToken(tokenID string) {
	var drop, again []*jsonrpc.Conn
	var calls []*posted
	g.update(func(s *state) {
		for c := range s.posted {
			if c.tokenID == tokenID {
				calls = append(calls, c)
			}
		}
		for conn, c := range s.conns {
			switch {
			case c.stage != ready:
				again = append(again, conn)
			case c.caller.TokenID == tokenID:
				drop = append(drop, conn)
			}
		}
	})
	for _, c := range calls {
		c.end(errRevoked())
	}
	for _, conn := range drop {
		conn.Close(CloseToken, CodeBadToken+": the token was revoked")
	}
	for _, conn := range again {
		conn.Close(jsonrpc.CloseGoingAway, "tokens changed: connect again")
	}
}

// Close ends every connection and refuses new ones. Pending events stay as
// they are: a stopping host settles nothing. It returns when every Accept has
// let go of its connection.
func (g *Gateway) Close() {
	var conns []*jsonrpc.Conn
	g.update(func(s *state) {
		s.closed = true
		for c := range s.conns {
			conns = append(conns, c)
		}
	})
	for _, c := range conns {
		c.Close(jsonrpc.CloseGoingAway, "the host is stopping")
	}
	g.accepts.Wait()
}
