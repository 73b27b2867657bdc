package notify

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"meanwhile/host/question"
	"meanwhile/host/session"
)

// within bounds every wait of a test.
const within = 20 * time.Second

// receiver is a local server that keeps what it gets.
type receiver struct {
	*httptest.Server
	got chan received

	mu     sync.Mutex
	status []int // of the next answers; then 200
	header http.Header
}

type received struct {
	method, path string
	header       http.Header
	body         []byte
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{got: make(chan received, 1000)}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		status := http.StatusOK
		if len(r.status) > 0 {
			status, r.status = r.status[0], r.status[1:]
		}
		for name, values := range r.header {
			w.Header()[name] = values
		}
		r.mu.Unlock()
		w.WriteHeader(status)
		r.got <- received{req.Method, req.URL.Path, req.Header, body}
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) answer(status ...int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

func (r *receiver) next(t *testing.T) received {
	t.Helper()
	select {
	case m := <-r.got:
		return m
	case <-time.After(within):
		t.Fatal("nothing was received")
	}
	panic("unreachable")
}

func (r *receiver) nothing(t *testing.T) {
	t.Helper()
	select {
	case m := <-r.got:
		t.Errorf("received %s %s %s, want nothing", m.method, m.path, m.body)
	default:
	}
}

// memory is a value area.
type memory struct {
	mu sync.Mutex
	m  map[string][]byte
}

func newMemory() *memory { return &memory{m: map[string][]byte{}} }

func (m *memory) Put(kind, key string, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.m[kind+" "+key] = data
	return nil
}

func (m *memory) Delete(kind, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.m, kind+" "+key)
	return nil
}

func (m *memory) Get(kind, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.m[kind+" "+key], nil
}

func (m *memory) Each(kind string, fn func(string, []byte) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for k, v := range m.m {
		if rest, ok := cutKind(k, kind); ok {
			if err := fn(rest, v); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *memory) count(kind string) (n int) {
	_ = m.Each(kind, func(string, []byte) error { n++; return nil })
	return n
}

func cutKind(k, kind string) (string, bool) {
	if len(k) <= len(kind) || k[:len(kind)+1] != kind+" " {
		return "", false
	}
	return k[len(kind)+1:], true
}

// sessions is a list whose items the test sends.
type sessions struct {
	items chan session.ListItem
	row   session.Row
}

func (s *sessions) Row(string) (session.Row, bool) { return s.row, true }
func (s *sessions) FollowList(ctx context.Context, fn func(session.ListItem) error) error {
	for {
		select {
		case item := <-s.items:
			if err := fn(item); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// world is a service with everything around it under the test's control.
type world struct {
	*Service
	list   *sessions
	values *memory
	window time.Duration
}

func newWorld(t *testing.T, o Options, values *memory) *world {
	t.Helper()
	w := &world{values: values, list: &sessions{items: make(chan session.ListItem), row: session.Row{
		ID: "s1", Title: "Payments", Agent: &session.RowAgent{Kind: "external", Name: "build-bot"},
	}}}
	if w.values == nil {
		w.values = newMemory()
	}
	o.Values, o.Sessions = w.values, w.list
	o.Remaining = func(string, string) time.Duration { return w.window }
	o.Link = func(card string) string { return "https://box.example/#/card/" + card }
	if o.Retry == 0 {
		o.Retry = time.Millisecond
	}
	o.Log = slog.New(slog.DiscardHandler)
	var err error
	if w.Service, err = Open(o); err != nil {
		t.Fatal(err)
	}
	return w
}

type fakePending struct{ id string }

func (p fakePending) ID() string       { return p.id }
func (fakePending) Cancel(string) bool { return true }
func (fakePending) Reemit() bool       { return true }

const oneChoice = `[{"id":"db","header":"Database","question":"Which store should sessions use?","options":[{"label":"Postgres (Recommended)"},{"label":"SQLite"}]}]`

// ask sends an ask out and returns how to settle it. window 0 is a blocking one.
func (w *world) ask(call, questions string, window time.Duration) (settle func(question.Settlement)) {
	w.window = window
	wait := map[string]any{}
	if call != "" {
		wait["callId"] = call
	}
	if window > 0 {
		wait["timed"] = true
	}
	params, err := json.Marshal(map[string]any{"sessionId": "s1", "request": map[string]any{"questions": json.RawMessage(questions), "wait": wait}})
	if err != nil {
		panic(err)
	}
	var sent question.Event
	emit := w.Watch(func(ev question.Event) question.Pending { sent = ev; return fakePending{"e-" + call} })
	emit(question.Event{Name: question.EventName, Params: params, Settled: func(question.Settlement) {}})
	return sent.Settled
}

// row is the session's row with these asks active.
func row(calls ...string) session.Row {
	r := session.Row{ID: "s1"}
	for _, c := range calls {
		r.Active = append(r.Active, json.RawMessage(`{"callId":"`+c+`","questions":[],"state":"continued"}`))
	}
	return r
}
