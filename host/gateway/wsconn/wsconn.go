package wsconn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/gorilla/websocket"

	"meanwhile/host/jsonrpc"
)

// Subprotocol is what both sides must speak.
const Subprotocol = "meanwhile.v1"

const (
	// PingEvery is short enough for the proxies that cut a quiet connection
	// after 30 to 60 seconds.
	PingEvery = 20 * time.Second
	// closeGrace is how long the peer has to answer a close code.
	closeGrace = 2 * time.Second
	// controlWrite bounds the write of one ping or close.
	controlWrite = time.Second
	// handshake bounds a dial.
	handshake = 10 * time.Second
	// maxReason is the room for a reason in a close frame.
	maxReason  = 123
	bufferSize = 16 << 10
)

// ErrSubprotocol refuses a peer that does not speak Subprotocol.
var ErrSubprotocol = errors.New("the WebSocket subprotocol must be " + Subprotocol)

// Config of the server side.
type Config struct {
	// CheckOrigin decides on the request's Origin, a missing one included.
	// Nil refuses every request.
	CheckOrigin func(*http.Request) bool
	// Header is added to the upgrade's response.
	Header http.Header
}

// Upgrade makes a request a transport. When it fails it has answered the
// request already.
func Upgrade(w http.ResponseWriter, r *http.Request, cfg Config) (jsonrpc.Transport, error) {
	if !slices.Contains(websocket.Subprotocols(r), Subprotocol) {
		http.Error(w, ErrSubprotocol.Error(), http.StatusBadRequest)
		return nil, ErrSubprotocol
	}
	check := cfg.CheckOrigin
	if check == nil {
		check = func(*http.Request) bool { return false }
	}
	up := websocket.Upgrader{
		HandshakeTimeout: handshake, ReadBufferSize: bufferSize, WriteBufferSize: bufferSize,
		Subprotocols: []string{Subprotocol}, CheckOrigin: check,
	}
	ws, err := up.Upgrade(w, r, cfg.Header)
	if err != nil {
		return nil, fmt.Errorf("upgrade: %w", err)
	}
	return newConn(ws), nil
}

// DialOptions of the client side. The zero value dials over the network.
type DialOptions struct {
	Header  http.Header
	NetDial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Dial connects to a ws or wss URL. A refused upgrade is an error that names
// the status.
func Dial(ctx context.Context, url string, o DialOptions) (jsonrpc.Transport, error) {
	d := websocket.Dialer{
		HandshakeTimeout: handshake, ReadBufferSize: bufferSize, WriteBufferSize: bufferSize,
		Subprotocols: []string{Subprotocol}, NetDialContext: o.NetDial,
	}
	ws, resp, err := d.DialContext(ctx, url, o.Header)
	switch {
	case err != nil && resp != nil:
		return nil, fmt.Errorf("dial %s: %s: %w", url, resp.Status, err)
	case err != nil:
		return nil, fmt.Errorf("dial %s: %w", url, err)
	case ws.Subprotocol() != Subprotocol:
		_ = ws.Close()
		return nil, fmt.Errorf("dial %s: %w", url, ErrSubprotocol)
	}
	return newConn(ws), nil
}

// conn is an open WebSocket.
type conn struct {
	ws      *websocket.Conn
	closing sync.Once

	mu     sync.Mutex
	pinger *time.Timer // nil once closed
}

func newConn(ws *websocket.Conn) *conn {
	c := &conn{ws: ws}
	// Our own Close answers the peer's; the library must not do it as well.
	ws.SetCloseHandler(func(int, string) error { return nil })
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pinger = time.AfterFunc(PingEvery, c.ping)
	return c
}

func (c *conn) ping() {
	err := c.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(controlWrite))
	c.mu.Lock()
	defer c.mu.Unlock()
	// A ping that finds a long frame being written is merely late.
	var timeout net.Error
	if c.pinger != nil && (err == nil || errors.As(err, &timeout) && timeout.Timeout()) {
		c.pinger.Reset(PingEvery)
	}
}

func (c *conn) Read(ctx context.Context) ([]byte, error) {
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, func() { _ = c.ws.SetReadDeadline(time.Unix(1, 0)) })
		defer stop()
	}
	// The library's own read limit would close without a reason and forget
	// the peer's answer; reading up to the limit is as good uncompressed.
	kind, r, err := c.ws.NextReader()
	var frame []byte
	if err == nil {
		frame, err = io.ReadAll(io.LimitReader(r, jsonrpc.MaxFrame+1))
	}
	var theirs *websocket.CloseError
	switch {
	case err == nil && len(frame) > jsonrpc.MaxFrame:
		return nil, fmt.Errorf("read: %w", jsonrpc.ErrTooBig)
	case err == nil && kind == websocket.TextMessage:
		return frame, nil
	case err == nil:
		return nil, &jsonrpc.CloseError{Code: jsonrpc.CloseUnsupported, Reason: "text frames only", Local: true}
	case errors.As(err, &theirs) && theirs.Code != websocket.CloseAbnormalClosure:
		// Answer with the code, as the protocol wants it; then it is over.
		c.finish(theirs.Code, "")
		return nil, &jsonrpc.CloseError{Code: theirs.Code, Reason: theirs.Text}
	}
	c.shut()
	return nil, fmt.Errorf("read: %w", err)
}

func (c *conn) Write(ctx context.Context, frame []byte) error {
	deadline, _ := ctx.Deadline()
	if err := c.ws.SetWriteDeadline(deadline); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if err := c.ws.WriteMessage(websocket.TextMessage, frame); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// Close sends the code and leaves the socket open for the peer's answer, which
// Read sees, for closeGrace.
func (c *conn) Close(code int, reason string) error {
	var err error
	c.closing.Do(func() {
		time.AfterFunc(closeGrace, c.shut) // even if nobody reads
		if err = c.ws.SetReadDeadline(time.Now().Add(closeGrace)); err == nil {
			err = c.ws.WriteControl(websocket.CloseMessage, closeFrame(code, reason), time.Now().Add(controlWrite))
		}
		if err != nil {
			c.shut()
		}
	})
	return err
}

// finish answers the peer's close and shuts the socket.
func (c *conn) finish(code int, reason string) {
	c.closing.Do(func() {
		// The peer may have gone after its code; that changes nothing.
		_ = c.ws.WriteControl(websocket.CloseMessage, closeFrame(code, reason), time.Now().Add(controlWrite))
	})
	c.shut()
}

func (c *conn) shut() {
	c.mu.Lock()
	if c.pinger != nil {
		c.pinger.Stop()
		c.pinger = nil
	}
	c.mu.Unlock()
	_ = c.ws.Close() // nothing is left to lose
}

// closeFrame cuts the reason to the room there is, between characters.
func closeFrame(code int, reason string) []byte {
	if code == websocket.CloseNoStatusReceived {
		return nil
	}
	if len(reason) > maxReason {
		reason = reason[:maxReason]
		for !utf8.ValidString(reason) {
			reason = reason[:len(reason)-1]
		}
	}
	return websocket.FormatCloseMessage(code, reason)
}
