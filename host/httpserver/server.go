package httpserver

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"meanwhile/host/auth"
)

// Limits.
const (
	maxHeader = 16 << 10
	maxCall   = 1 << 20
	maxLogin  = 4 << 10

	headerWithin = 5 * time.Second  // to send the header of a request
	bodyWithin   = 30 * time.Second // to send all of it
	writeWithin  = time.Minute      // to take a response
	idleWithin   = 2 * time.Minute  // between requests
)

// Options is what the server serves. All but Extra and Log are needed.
type Options struct {
	Gate  *auth.Gate
	Codes *auth.Codes

	Page   fs.FS // rooted at index.html
	Module []byte

	// Socket upgrades an admitted WebSocket handshake and serves it until the
	// connection ends or ctx does. token is nil when the client shows its token
	// in initialize instead of a header, as browsers do.
	Socket func(ctx context.Context, w http.ResponseWriter, r *http.Request, token *auth.Token)

	// Post answers one posted call with a status and a body, and says what to run
	// once they are written whole.
	Post func(ctx context.Context, token auth.Token, body []byte) (int, []byte, func())

	// Ready returns why asks and answers are not taken, or nil. Its text is shown
	// to whoever asks.
	Ready func() error

	Extra []Route // further doors
	TLS   bool    // the listener speaks TLS
	Log   *slog.Logger
}

// Route is one path of the server.
type Route struct {
	Path    string   // exact; with a slash at its end, everything below it
	Methods []string // the allowed ones
	Need    auth.Need
	Long    bool // the handler sets its own deadlines
	Handle  func(w http.ResponseWriter, r *http.Request, token *auth.Token)
	Refuse  func(w http.ResponseWriter, status int, reason string) // nil: plain text
}

// Server serves the routes of one host.
type Server struct {
	opts   Options
	http   *http.Server
	stop   context.CancelFunc
	ctx    context.Context // of every request and socket
	static map[string]*asset

	mu      sync.Mutex
	closing bool
	sockets sync.WaitGroup
}

// New reads the page into memory and prepares the routes.
func New(o Options) (*Server, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	static, err := loadAssets(o.Page, o.Module)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Server{opts: o, stop: stop, ctx: ctx, static: static}
	s.http = &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: headerWithin,
		ReadTimeout:       bodyWithin,
		IdleTimeout:       idleWithin,
		MaxHeaderBytes:    maxHeader,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	return s, nil
}

// Handler is the whole server without a listener.
func (s *Server) Handler() http.Handler { return s.http.Handler }

// Serve accepts connections until Close. It returns nil after Close.
func (s *Server) Serve(l net.Listener) error {
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Close stops accepting, ends every request and socket, and waits for them as
// long as ctx allows.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	s.stop()
	err := s.http.Shutdown(ctx)
	done := make(chan struct{})
	go func() { s.sockets.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		err = errors.Join(err, ctx.Err())
	}
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	return err
}

// enter counts a socket; false once the server closes.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return false
	}
	s.sockets.Add(1)
	return true
}
