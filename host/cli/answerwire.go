package cli

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"meanwhile/host/jsonrpc"
	"meanwhile/shared/event/value"
	"meanwhile/shared/projection"
)

// answerWire is the side of a client that the host calls: it takes the delivery
// of one ask and holds those of all others, which it must not hand back.
type answerWire struct {
	session, call string

	mu      sync.Mutex
	bell    chan struct{} // has room for one
	seen    map[string]bool
	synced  []string // event ids; nil until the host said them
	current *delivery
	settled map[string]settlement
}

// delivery is one time that the host asked for the answer.
type delivery struct {
	eventID   string
	questions []projection.Question
	timed     bool
	refused   string
	reply     chan json.RawMessage // has room for the one reply
}

// settlement is how an event ended.
type settlement struct {
	EventID string `json:"eventId"`
	Kind    string `json:"kind"`
	Code    string `json:"code"`
	By      string `json:"by"`
	ByName  string `json:"byName"`
}

func newAnswerWire(session, call string) *answerWire {
	return &answerWire{session: session, call: call, bell: make(chan struct{}, 1), seen: map[string]bool{}, settled: map[string]settlement{}}
}

// Handle serves what the host calls.
func (w *answerWire) Handle(ctx context.Context, r *jsonrpc.Request) (any, error) {
	switch r.Method {
	case "ping":
		return map[string]int64{"time": time.Now().UnixMilli()}, nil
	case "remote/synced":
		var p struct{ EventIDs []string }
		if err := json.Unmarshal(r.Params, &p); err != nil {
			return nil, err
		}
		w.update(func() { w.synced = append([]string{}, p.EventIDs...) })
	case "remote/settled":
		var p settlement
		if err := json.Unmarshal(r.Params, &p); err != nil {
			return nil, err
		}
		w.update(func() {
			if w.current != nil && w.current.eventID == p.EventID {
				w.settled[p.EventID] = p
			}
		})
	case "user-questions/request":
		return w.request(ctx, r)
	}
	return nil, nil
}

func (w *answerWire) request(ctx context.Context, r *jsonrpc.Request) (any, error) {
	var p struct {
		EventID   string `json:"eventId"`
		SessionID string `json:"sessionId"`
		Request   struct {
			Questions json.RawMessage `json:"questions"`
			Wait      *struct {
				CallID string `json:"callId"`
				Timed  bool   `json:"timed"`
			} `json:"wait"`
		} `json:"request"`
		Refused *struct{ Code, Field, Message string } `json:"refused"`
	}
	if err := json.Unmarshal(r.Params, &p); err != nil {
		return nil, err
	}
	d := &delivery{eventID: p.EventID, reply: make(chan json.RawMessage, 1)}
	mine := p.SessionID == w.session && p.Request.Wait != nil && p.Request.Wait.CallID == w.call
	if mine {
		doc, err := value.Parse(p.Request.Questions)
		if err != nil {
			return nil, err
		}
		var problem *projection.Problem
		if d.questions, problem = projection.QuestionsOfWire(doc); problem != nil {
			return nil, problem
		}
		d.timed = p.Request.Wait.Timed
		if p.Refused != nil {
			d.refused = p.Refused.Code + ": " + p.Refused.Field + ": " + p.Refused.Message
		}
	}
	w.update(func() {
		w.seen[p.EventID] = true
		if mine {
			w.current = d
		}
	})
	select {
	case answer := <-d.reply:
		return answer, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (w *answerWire) update(f func()) {
	w.mu.Lock()
	f()
	w.mu.Unlock()
	select {
	case w.bell <- struct{}{}:
	default:
	}
}

// wait until cond, which runs under the lock, is true. One caller at a time.
func (w *answerWire) wait(ctx context.Context, within time.Duration, cond func() bool) bool {
	late := time.NewTimer(within)
	defer late.Stop()
	for {
		w.mu.Lock()
		ok := cond()
		w.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-w.bell:
		case <-late.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// complete: every delivery that was pending has come. For wait.
func (w *answerWire) complete() bool {
	for _, id := range w.synced {
		if !w.seen[id] {
			return false
		}
	}
	return w.synced != nil
}

// refusedAfter: the host asks again, after d was answered. For wait.
func (w *answerWire) refusedAfter(d *delivery) bool {
	return w.current != d && w.current != nil && w.current.refused != ""
}

func (w *answerWire) refusal(d *delivery) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refusedAfter(d) {
		return w.current.refused
	}
	return ""
}

func (w *answerWire) delivery() *delivery {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.current
}

func (w *answerWire) end(eventID string) settlement {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.settled[eventID]
}
