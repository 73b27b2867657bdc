package wsconn

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"

	"meanwhile/host/jsonrpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve upgrades every request and gives the transport to f; it waits for f.
func serve(t *testing.T, cfg Config, f func(jsonrpc.Transport)) (url string) {
	t.Helper()
	// The server does not wait for hijacked connections, and a WaitGroup must
	// not be added to while it is waited for.
	var mu sync.Mutex
	var running []chan struct{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		done := make(chan struct{})
		defer close(done)
		mu.Lock()
		running = append(running, done)
		mu.Unlock()
		if tr, err := Upgrade(w, r, cfg); err == nil {
			f(tr)
		}
	}))
	t.Cleanup(func() {
		s.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, done := range running {
			<-done
		}
	})
	return "ws" + strings.TrimPrefix(s.URL, "http")
}

func allow(*http.Request) bool { return true }

// echo runs a Conn that answers every call with its params.
func echo(tr jsonrpc.Transport) {
	c := jsonrpc.NewConn(tr, jsonrpc.HandlerFunc(func(_ context.Context, r *jsonrpc.Request) (any, error) {
		return r.Params, nil
	}), jsonrpc.Options{})
	<-c.Done()
	c.Wait()
}

// raw dials without this package, to break its rules.
func raw(t *testing.T, url string, d websocket.Dialer, h http.Header) (*websocket.Conn, *http.Response, error) {
	t.Helper()
	ws, resp, err := d.DialContext(t.Context(), url, h)
	if ws != nil {
		t.Cleanup(func() { _ = ws.Close() })
	}
	if resp != nil {
		t.Cleanup(func() { _ = resp.Body.Close() })
	}
	return ws, resp, err
}

func TestCallOverWebSocket(t *testing.T) {
	url := serve(t, Config{CheckOrigin: allow}, echo)
	tr, err := Dial(t.Context(), url, DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c := jsonrpc.NewConn(tr, nil, jsonrpc.Options{})
	for _, size := range []int{1, bufferSize, 1_000_000} {
		want := map[string]string{"a": strings.Repeat("é", size/2)}
		var got map[string]string
		if err := c.Call(t.Context(), "echo", want, &got); err != nil || got["a"] != want["a"] {
			t.Errorf("%d bytes: got %d, %v", size, len(got["a"]), err)
		}
	}
	c.Close(jsonrpc.CloseNormal, "")
	c.Wait()
}

func TestRefusedUpgrades(t *testing.T) {
	tests := []struct {
		name   string
		check  func(*http.Request) bool
		offer  []string
		origin string
		want   int
	}{
		{name: "no subprotocol", check: allow, want: http.StatusBadRequest},
		{name: "another subprotocol", check: allow, offer: []string{"meanwhile.v2"}, want: http.StatusBadRequest},
		{name: "no origin check", offer: []string{Subprotocol}, want: http.StatusForbidden},
		{
			name: "origin", check: func(r *http.Request) bool { return r.Header.Get("Origin") == "http://good" },
			offer: []string{Subprotocol}, origin: "http://evil", want: http.StatusForbidden,
		},
		{
			name: "good", check: func(r *http.Request) bool { return r.Header.Get("Origin") == "http://good" },
			offer: []string{"other", Subprotocol}, origin: "http://good", want: http.StatusSwitchingProtocols,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			url := serve(t, Config{CheckOrigin: test.check}, echo)
			h := http.Header{}
			if test.origin != "" {
				h.Set("Origin", test.origin)
			}
			_, resp, err := raw(t, url, websocket.Dialer{Subprotocols: test.offer}, h)
			if resp == nil || resp.StatusCode != test.want {
				t.Errorf("got %v, %v; want status %d", resp, err, test.want)
			}
		})
	}
}

func TestDialRefused(t *testing.T) {
	t.Run("status", func(t *testing.T) {
		url := serve(t, Config{}, echo)
		_, err := Dial(t.Context(), url, DialOptions{})
		if err == nil || !strings.Contains(err.Error(), "403") {
			t.Errorf("got %v, want the status", err)
		}
	})
	t.Run("server without the subprotocol", func(t *testing.T) {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			up := websocket.Upgrader{}
			if ws, err := up.Upgrade(w, r, nil); err == nil {
				_ = ws.Close()
			}
		}))
		defer s.Close()
		_, err := Dial(t.Context(), "ws"+strings.TrimPrefix(s.URL, "http"), DialOptions{})
		if !errors.Is(err, ErrSubprotocol) {
			t.Errorf("got %v, want %v", err, ErrSubprotocol)
		}
	})
}

func TestCompressionIsNotNegotiated(t *testing.T) {
	url := serve(t, Config{CheckOrigin: allow}, echo)
	_, resp, err := raw(t, url, websocket.Dialer{Subprotocols: []string{Subprotocol}, EnableCompression: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := resp.Header.Get("Sec-WebSocket-Extensions"); got != "" {
		t.Errorf("extensions %q, want none", got)
	}
}

// TestBrokenRules has a peer break one and checks the code and reason it gets,
// also when more of its data is on the way.
func TestBrokenRules(t *testing.T) {
	tests := []struct {
		name string
		kind int
		data string
		code int
		want string
	}{
		{name: "binary", kind: websocket.BinaryMessage, data: "{}", code: jsonrpc.CloseUnsupported, want: "text frames only"},
		{name: "garbage", kind: websocket.TextMessage, data: "hello", code: jsonrpc.CloseInvalid, want: "bad frame: not one JSON text"},
		{name: "not UTF-8", kind: websocket.TextMessage, data: "\"\xff\"", code: jsonrpc.CloseInvalid, want: "bad frame: text is not valid UTF-8"},
		{name: "too big", kind: websocket.TextMessage, data: strings.Repeat("x", 8*jsonrpc.MaxFrame), code: jsonrpc.CloseTooBig, want: "bad frame: over 1048576 bytes"},
		{name: "at the limit", kind: websocket.TextMessage, data: strings.Repeat("x", jsonrpc.MaxFrame), code: jsonrpc.CloseInvalid, want: "bad frame: not one JSON text"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			url := serve(t, Config{CheckOrigin: allow}, echo)
			ws, _, err := raw(t, url, websocket.Dialer{Subprotocols: []string{Subprotocol}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			// Later writes may find the connection closed: the code still comes.
			for range 3 {
				_ = ws.WriteMessage(test.kind, []byte(test.data))
			}
			_, _, err = ws.ReadMessage()
			var closed *websocket.CloseError
			if !errors.As(err, &closed) || closed.Code != test.code || closed.Text != test.want {
				t.Errorf("got %v, want %d %q", err, test.code, test.want)
			}
		})
	}
}

func TestCloseCodesBothWays(t *testing.T) {
	long := strings.Repeat("é", 100)
	tests := []struct {
		name       string
		code       int
		reason     string
		wantReason string
	}{
		{name: "token", code: 4401, reason: "BAD_TOKEN: no", wantReason: "BAD_TOKEN: no"},
		{name: "slow", code: jsonrpc.CloseSlow, reason: "too slow", wantReason: "too slow"},
		{name: "long reason", code: 4400, reason: long, wantReason: strings.Repeat("é", 61)},
	}
	for _, test := range tests {
		for _, serverCloses := range []bool{true, false} {
			t.Run(test.name, func(t *testing.T) {
				seen := make(chan error, 1)
				url := serve(t, Config{CheckOrigin: allow}, func(tr jsonrpc.Transport) {
					c := jsonrpc.NewConn(tr, nil, jsonrpc.Options{})
					if serverCloses {
						c.Close(test.code, test.reason)
					}
					<-c.Done()
					c.Wait()
					seen <- c.Err()
				})
				tr, err := Dial(t.Context(), url, DialOptions{})
				if err != nil {
					t.Fatal(err)
				}
				c := jsonrpc.NewConn(tr, nil, jsonrpc.Options{})
				if !serverCloses {
					c.Close(test.code, test.reason)
				}
				<-c.Done()
				c.Wait()
				got, server := c.Err(), <-seen
				if !serverCloses {
					got = server
				}
				var closed *jsonrpc.CloseError
				if !errors.As(got, &closed) || closed.Code != test.code || closed.Reason != test.wantReason || closed.Local {
					t.Errorf("got %v, want %d %q from the peer", got, test.code, test.wantReason)
				}
			})
		}
	}
}

func TestPeerVanishes(t *testing.T) {
	seen := make(chan error, 1)
	url := serve(t, Config{CheckOrigin: allow}, func(tr jsonrpc.Transport) {
		_, err := tr.Read(context.Background())
		seen <- err
	})
	ws, _, err := raw(t, url, websocket.Dialer{Subprotocols: []string{Subprotocol}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = ws.NetConn().Close()
	var closed *jsonrpc.CloseError
	if err := <-seen; err == nil || errors.As(err, &closed) {
		t.Errorf("got %v, want an error that is no close code", err)
	}
}

// piped upgrades over a net.Pipe, for the fake clock.
func piped(t *testing.T) (server jsonrpc.Transport, client *websocket.Conn) {
	t.Helper()
	ours, theirs := net.Pipe()
	upgraded := make(chan jsonrpc.Transport)
	go func() {
		r, err := http.ReadRequest(bufio.NewReader(ours))
		if err != nil {
			t.Error(err)
			close(upgraded)
			return
		}
		tr, err := Upgrade(&hijack{conn: ours}, r, Config{CheckOrigin: allow})
		if err != nil {
			t.Error(err)
		}
		upgraded <- tr
	}()
	d := websocket.Dialer{
		Subprotocols:   []string{Subprotocol},
		NetDialContext: func(context.Context, string, string) (net.Conn, error) { return theirs, nil },
	}
	ws, _, err := d.DialContext(t.Context(), "ws://pipe/rpc", nil)
	if err != nil {
		t.Fatal(err)
	}
	return <-upgraded, ws
}

// hijack is a ResponseWriter of just the connection.
type hijack struct {
	http.ResponseWriter
	conn net.Conn
}

func (h *hijack) Header() http.Header { return http.Header{} }

func (h *hijack) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return h.conn, bufio.NewReadWriter(bufio.NewReader(h.conn), bufio.NewWriter(h.conn)), nil
}

func TestPingsEvery20s(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := piped(t)
		start := time.Now()
		var pings []time.Duration
		client.SetPingHandler(func(string) error {
			pings = append(pings, time.Since(start))
			return nil
		})
		var wg sync.WaitGroup
		wg.Go(func() { _, _, _ = client.ReadMessage() })
		wg.Go(func() { _, _ = server.Read(context.Background()) })
		time.Sleep(3*PingEvery + 1)
		if err := server.Close(jsonrpc.CloseNormal, ""); err != nil {
			t.Error(err)
		}
		_ = client.Close()
		wg.Wait()
		time.Sleep(2 * PingEvery) // no ping comes after the close
		if len(pings) != 3 || pings[0] != PingEvery || pings[2] != 3*PingEvery {
			t.Errorf("pings at %v, want every %s", pings, PingEvery)
		}
	})
}

func TestStuckPeerCannotHoldTheClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := piped(t)
		defer func() { _ = client.Close() }()
		start := time.Now()
		c := jsonrpc.NewConn(server, nil, jsonrpc.Options{PingEvery: -1})
		_ = c.Notify(t.Context(), "x", json.RawMessage(`{}`)) // nobody reads it
		<-c.Done()
		if got := time.Since(start); got != jsonrpc.DefaultWriteTimeout {
			t.Errorf("ended after %s, want %s", got, jsonrpc.DefaultWriteTimeout)
		}
		c.Wait()
		if got := time.Since(start); got > jsonrpc.DefaultWriteTimeout+closeGrace {
			t.Errorf("gone after %s, want %s at most", got, jsonrpc.DefaultWriteTimeout+closeGrace)
		}
		var closed *jsonrpc.CloseError
		if err := c.Err(); !errors.As(err, &closed) || closed.Code != jsonrpc.CloseSlow {
			t.Errorf("got %v, want close code %d", err, jsonrpc.CloseSlow)
		}
	})
}

func TestReadHonoursItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := piped(t)
		defer func() { _ = client.Close() }()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := server.Read(ctx); err == nil {
			t.Error("read returned without an error")
		}
	})
}
