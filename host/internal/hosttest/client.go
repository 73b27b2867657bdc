package hosttest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"

	"meanwhile/host/jsonrpc"
)

// Client is one client of a host.
type Client struct {
	*jsonrpc.Conn
	ID string

	t       testing.TB
	asks    chan *Ask
	notices chan Notice
}

// Ask is one question that the host asked this client.
type Ask struct {
	EventID   string `json:"eventId"`
	SessionID string `json:"sessionId"`
	Request   struct {
		Questions json.RawMessage `json:"questions"`
		Wait      struct {
			CallID string `json:"callId"`
			Timed  bool   `json:"timed"`
		} `json:"wait"`
	} `json:"request"`
	Refused *struct{ Code, Field, Message string } `json:"refused"`

	// Gone is closed when the host takes the question back, or took the answer.
	Gone <-chan struct{} `json:"-"`

	answer chan reply
}

type reply struct {
	result any
	err    error
}

// Answer answers with {"answers": answers}, given as JSON.
func (a *Ask) Answer(answers string) {
	a.answer <- reply{result: map[string]any{"answers": json.RawMessage(answers)}}
}

// Fail answers with a business error, such as NEXT or ASK_TIMED_OUT.
func (a *Ask) Fail(code string) {
	data, _ := json.Marshal(map[string]string{"code": code}) // a map of strings
	a.answer <- reply{err: &jsonrpc.Fault{Code: jsonrpc.CodeApplication, Message: code, Data: data}}
}

// Notice is one notification of the host.
type Notice struct {
	Method string
	Params json.RawMessage
}

// serve keeps what the host sends for the test to take.
func (c *Client) serve(ctx context.Context, q *jsonrpc.Request) (any, error) {
	if !q.IsCall() {
		c.notices <- Notice{q.Method, q.Params}
		return nil, nil
	}
	if q.Method == "ping" {
		return map[string]int{"time": 0}, nil
	}
	a := &Ask{Gone: ctx.Done(), answer: make(chan reply, 1)}
	if err := json.Unmarshal(q.Params, a); err != nil {
		return nil, err
	}
	c.asks <- a
	select {
	case r := <-a.answer:
		return r.result, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Call calls a method and fails the test on an error. result may be nil.
func (c *Client) Call(method string, params, result any) {
	c.t.Helper()
	if err := c.Try(method, params, result); err != nil {
		c.t.Fatalf("%s: %v", method, err)
	}
}

// Try calls a method and returns its error.
func (c *Client) Try(method string, params, result any) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return c.Conn.Call(ctx, method, params, result)
}

// Next waits for the next question.
func (c *Client) Next() *Ask {
	c.t.Helper()
	return take(c.t, c.asks, "a question")
}

// Asks is where questions arrive, for a test that wants none.
func (c *Client) Asks() <-chan *Ask { return c.asks }

// Notice waits for the next notification of a method; others are dropped.
func (c *Client) Notice(method string) Notice {
	c.t.Helper()
	for {
		if n := take(c.t, c.notices, method); n.Method == method {
			return n
		}
	}
}

// Claim attaches to a wait and returns the remaining time. The claim is held
// until release is called.
func (c *Client) Claim(a *Ask) (remainingMs int64, release func()) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	frames := make(chan int64, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- c.Stream(ctx, "userQuestions/attachWait", map[string]string{"sessionId": a.SessionID, "callId": a.Request.Wait.CallID}, func(item json.RawMessage) error {
			var frame struct {
				RemainingMs int64 `json:"remainingMs"`
			}
			if err := json.Unmarshal(item, &frame); err != nil {
				return err
			}
			frames <- frame.RemainingMs
			return nil
		})
	}()
	release = func() { cancel(); <-ended }
	select {
	case ms := <-frames:
		return ms, release
	case err := <-ended:
		ended <- err
		c.t.Fatalf("the claim ended without a frame: %v", err)
	case <-expired(c.t):
		c.t.Fatal("no frame came")
	}
	return 0, release
}

// Follow calls f with each item of a stream until f is satisfied.
func (c *Client) Follow(method string, params any, f func(item json.RawMessage) (enough bool)) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	enough := errors.New("enough")
	err := c.Stream(ctx, method, params, func(item json.RawMessage) error {
		if f(item) {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		c.t.Fatalf("%s ended too early: %v", method, err)
	}
}

// Event is one event of a followed session.
type Event struct {
	Seq  int64           `json:"seq"`
	Type string          `json:"type"`
	Data json.RawMessage `json:"data"`
}

// Until follows a session until an event satisfies f and returns all up to it.
func (c *Client) Until(sessionID string, f func(Event) bool) []Event {
	c.t.Helper()
	var events []Event
	c.Follow("session/follow", map[string]string{"sessionId": sessionID}, func(raw json.RawMessage) bool {
		var item struct{ Events []Event }
		if err := json.Unmarshal(raw, &item); err != nil {
			c.t.Fatal(err)
		}
		for _, e := range item.Events {
			events = append(events, e)
			if f(e) {
				return true
			}
		}
		return false
	})
	return events
}

// Leave closes the connection and waits for its end.
func (c *Client) Leave() {
	c.Close(jsonrpc.CloseNormal, "done")
	c.Wait()
}

func (h *Host) do(method, path string, body []byte, header map[string]string) (int, json.RawMessage) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, h.URL(path), bytes.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	for key, value := range header {
		r.Header.Set(key, value)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return resp.StatusCode, out
}

// take waits for the next value of a channel.
func take[T any](t testing.TB, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-expired(t):
		t.Fatalf("%s did not come within %v", what, within)
	}
	panic("unreachable")
}

func expired(t testing.TB) <-chan struct{} {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	t.Cleanup(cancel)
	return ctx.Done()
}
