package llmtest

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
)

const maxBody = 8 << 20

// Request is one recorded request.
type Request struct {
	Path   string
	Header http.Header
	Body   []byte
}

// Message is what tests look at in a request's messages.
type Message struct {
	Role             string  `json:"role"`
	Content          *string `json:"content"`
	ReasoningContent *string `json:"reasoning_content"`
	ToolCallID       string  `json:"tool_call_id"`
	ToolCalls        []struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// Messages decodes the conversation of a request.
func (r Request) Messages(t testing.TB) []Message {
	t.Helper()
	var doc struct {
		Messages []Message `json:"messages"`
	}
	if err := json.Unmarshal(r.Body, &doc); err != nil {
		t.Fatalf("request body: %v", err)
	}
	return doc.Messages
}

// Server is the scripted server.
type Server struct {
	URL string // base url for an adapter

	t      testing.TB
	http   *http.Server
	client *http.Client
	gone   chan struct{} // receives once for each request whose client went away early

	mu       sync.Mutex
	replies  []Reply
	requests []Request
}

// New starts a server on a port of the loopback interface.
func New(t testing.TB, replies ...Reply) *Server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return start(t, l, "http://"+l.Addr().String(), &http.Transport{}, replies)
}

// Pipe starts a server that only Client reaches, without a network, for use
// inside testing/synctest. Call it within the bubble, and Close before the
// bubble ends (the test's cleanup does, if the test is the bubble's).
func Pipe(t testing.TB, replies ...Reply) *Server {
	t.Helper()
	l := &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
	return start(t, l, "http://pipe.test", &http.Transport{DialContext: l.dial}, replies)
}

func start(t testing.TB, l net.Listener, url string, tr *http.Transport, replies []Reply) *Server {
	s := &Server{URL: url, t: t, replies: replies, client: &http.Client{Transport: tr}, gone: make(chan struct{}, 64)}
	s.http = &http.Server{Handler: s}
	served := make(chan struct{})
	go func() {
		defer close(served)
		s.http.Serve(l)
	}()
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		s.http.Close()
		<-served
	})
	return s
}

// Client is an HTTP client that reaches the server.
func (s *Server) Client() *http.Client { return s.client }

// Add appends replies to the script.
func (s *Server) Add(replies ...Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replies = append(s.replies, replies...)
}

// Requests returns what was asked so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Gone receives once for each request whose client closed the connection
// before the reply was over.
func (s *Server) Gone() <-chan struct{} { return s.gone }

// ServeHTTP plays the next reply.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "request too large", http.StatusRequestEntityTooLarge)
		return
	}
	s.mu.Lock()
	s.requests = append(s.requests, Request{Path: r.URL.Path, Header: r.Header.Clone(), Body: body})
	var reply Reply
	ok := len(s.replies) > 0
	if ok {
		reply, s.replies = s.replies[0], s.replies[1:]
	}
	s.mu.Unlock()
	if !ok {
		s.t.Errorf("llmtest: a request beyond the script")
		http.Error(w, "beyond the script", http.StatusInternalServerError)
		return
	}
	if !reply.play(w, r) {
		select {
		case s.gone <- struct{}{}:
		default:
		}
	}
}

// pipeListener accepts in-memory connections.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { l.once.Do(func() { close(l.done) }); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }
