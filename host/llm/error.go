package llm

import (
	"strconv"
	"time"
)

// Kind sorts errors by what a caller does about them. Its text is the stable
// code that is recorded and shown.
type Kind string

// The kinds of errors.
const (
	KindAuth      Kind = "LLM_AUTH"         // the key is missing, wrong or out of credit: tell the person
	KindRateLimit Kind = "LLM_RATE_LIMIT"   // too many requests: later
	KindRequest   Kind = "LLM_BAD_REQUEST"  // the provider refuses this request as it is
	KindServer    Kind = "LLM_SERVER"       // the provider failed
	KindConnect   Kind = "LLM_CONNECT"      // no response was had at all
	KindCut       Kind = "LLM_CUT"          // the stream ended before its finish reason
	KindProtocol  Kind = "LLM_PROTOCOL"     // the stream is not what the format says, or over a limit
	KindIdle      Kind = "LLM_IDLE_TIMEOUT" // nothing, or nothing but keep-alives, for too long
	KindAborted   Kind = "LLM_ABORTED"      // the caller cancelled
)

// Error is the only error type a Provider yields. Its message never holds the
// API key.
type Error struct {
	Kind       Kind
	Provider   string
	Status     int           // HTTP status, 0 when there was none
	Message    string        // for a person and the log
	RetryAfter time.Duration // what the provider asked for, 0 when nothing
	Err        error         // the cause, may be nil
}

func (e *Error) Error() string {
	s := string(e.Kind)
	if e.Provider != "" {
		s += ": " + e.Provider
	}
	if e.Status != 0 {
		s += ": status " + strconv.Itoa(e.Status)
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }
