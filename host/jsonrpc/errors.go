package jsonrpc

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Error codes of the protocol and of its LSP-style extensions.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
	CodeApplication    = -32000 // a business error; Data says which
	CodeBusy           = -32001 // too many calls in flight
	CodeCancelled      = -32800 // the caller cancelled
)

// Close codes, in the numbers of RFC 6455. Transports without such numbers
// carry them in their own way.
const (
	CloseNormal      = 1000
	CloseGoingAway   = 1001
	CloseProtocol    = 1002
	CloseUnsupported = 1003
	CloseInvalid     = 1007
	ClosePolicy      = 1008
	CloseTooBig      = 1009
	CloseSlow        = 1013
)

var (
	// ErrClosed is wrapped by every failure that is the connection's end.
	ErrClosed = errors.New("connection closed")
	// ErrBusy reports a call that would exceed Options.MaxCalls.
	ErrBusy = errors.New("too many calls in flight")
	// ErrTooBig reports a message, or a stream item, over its size limit.
	ErrTooBig = errors.New("message too big")
	// ErrStalled ends a stream whose callback kept the reader waiting.
	ErrStalled = errors.New("stream items were not taken in time")
	// ErrCancelled is the cause of a served call's context when the caller
	// cancelled it.
	ErrCancelled = errors.New("cancelled by the caller")
)

// Error is the peer's answer to a call of ours. It is never sent: an error of
// ours is a Fault, so one peer's words cannot leak to another by accident.
type Error struct {
	Code    int
	Message string
	Data    json.RawMessage
}

func (e *Error) Error() string { return fmt.Sprintf("peer error %d: %s", e.Code, e.Message) }

// Fault is an error a handler sends to the peer. Any other error it returns is
// logged and goes out as a bare CodeInternal.
type Fault struct {
	Code    int
	Message string
	Data    json.RawMessage
}

func (f *Fault) Error() string { return fmt.Sprintf("rpc fault %d: %s", f.Code, f.Message) }

// Faultf returns a Fault without data.
func Faultf(code int, format string, args ...any) *Fault {
	return &Fault{Code: code, Message: fmt.Sprintf(format, args...)}
}

// CloseError says why a connection ended. Transport.Read returns it for the
// peer's close; Conn.Err for an end of ours, with Local set.
type CloseError struct {
	Code   int
	Reason string
	Local  bool
}

func (e *CloseError) Error() string {
	who := "the peer"
	if e.Local {
		who = "this side"
	}
	if e.Reason == "" {
		return fmt.Sprintf("closed by %s with code %d", who, e.Code)
	}
	return fmt.Sprintf("closed by %s with code %d: %s", who, e.Code, e.Reason)
}

// FrameError is a frame that breaks a rule of the codec. Close is the code
// that ends the connection over it.
type FrameError struct {
	Close   int
	Message string
}

func (e *FrameError) Error() string { return "bad frame: " + e.Message }

func badFrame(format string, args ...any) *FrameError {
	return &FrameError{Close: CloseInvalid, Message: fmt.Sprintf(format, args...)}
}
