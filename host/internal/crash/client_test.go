package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"meanwhile/host/internal/id"
	"meanwhile/host/jsonrpc"
)

// asker is an outside agent: it asks, awaits, claims replies and admits them.
// What it was told goes into the ledger.
func (l *load) asker(ctx context.Context, rng *rand.Rand, name string, road func(context.Context) (caller, func(), error)) error {
	call, leave, err := road(ctx)
	if err != nil {
		return nil // killed already
	}
	defer leave()
	led := l.run.led
	try := func(method string, params, result any) error {
		if err := call(ctx, method, params, result); err != nil {
			return l.fate(method, err)
		}
		return nil
	}
	var opened struct{ SessionID string }
	if err := try("session/open", obj{"title": name, "key": name, "agent": obj{"kind": "external", "name": name}}, &opened); err != nil {
		return l.settled(ctx, err)
	}
	session := opened.SessionID
	if session == "" {
		return nil
	}
	led.note(func() { led.sessions[session] = true })
	for ctx.Err() == nil && !l.dead.Load() {
		// A request whose outcome nobody told is made again under its id.
		request := request{session, id.New()}
		led.note(func() {
			if old, ok := led.requests[name]; ok {
				request = old
			}
			led.requests[name] = request
		})
		var s standing
		ask := obj{"sessionId": session, "requestId": request.id, "timeout": 1 + rng.IntN(2), "holdMs": 1 + rng.IntN(600),
			"questions": []obj{{"id": "q", "question": "Which " + request.id + "?"}}}
		if err := try("userQuestions/ask", ask, &s); err != nil {
			return l.settled(ctx, err)
		}
		led.note(func() { delete(led.requests, name) })
		l.told(session, s)
		if s.Status == "pending" && rng.IntN(2) == 0 {
			var again standing
			if err := try("userQuestions/await", obj{"sessionId": session, "callId": s.CallID, "holdMs": 1 + rng.IntN(1200)}, &again); err != nil {
				return l.settled(ctx, err)
			}
			l.told(session, again)
		}
		if rng.IntN(3) == 0 {
			if err := l.admit(session, try); err != nil {
				return l.settled(ctx, err)
			}
		}
	}
	return nil
}

type standing struct {
	Status, CallID, MessageID string
	Answers                   json.RawMessage
}

func (l *load) told(session string, s standing) {
	if s.Status != "answered" {
		return
	}
	l.confirmed()
	text, _ := answerText([]byte(`{"answers":` + string(s.Answers) + `}`))
	l.run.led.note(func() {
		l.run.led.answered = append(l.run.led.answered, acceptance{session, s.CallID, s.MessageID, text})
	})
}

func (l *load) admit(session string, try func(string, any, any) error) error {
	var claimed struct{ Messages []struct{ ID string } }
	if err := try("inbox/claim", obj{"sessionId": session}, &claimed); err != nil {
		return err
	}
	ids := []string{}
	for _, m := range claimed.Messages {
		ids = append(ids, m.ID)
	}
	if len(ids) == 0 {
		return nil
	}
	var out struct{ Admitted []string }
	if err := try("inbox/admit", obj{"sessionId": session, "messageIds": ids}, &out); err != nil {
		return err
	}
	l.confirmed()
	l.run.led.note(func() {
		for _, id := range out.Admitted {
			l.run.led.admitted = append(l.run.led.admitted, note{session, id})
		}
	})
	return nil
}

// person answers, ignores or lets expire what the host sends.
func (l *load) person(ctx context.Context, rng *rand.Rand) error {
	seed := rng.Uint64()
	var conn *jsonrpc.Conn
	ready := make(chan struct{})
	conn, err := l.connect(ctx, jsonrpc.HandlerFunc(func(ctx context.Context, q *jsonrpc.Request) (any, error) {
		if q.Method == "ping" {
			return obj{"time": 0}, nil
		}
		if !q.IsCall() {
			return nil, nil
		}
		var ev struct {
			SessionID, EventID string
			Request            struct {
				Questions []struct{ ID string }
				Wait      struct{ CallID string }
			}
		}
		if err := json.Unmarshal(q.Params, &ev); err != nil {
			return nil, err
		}
		// Calls come at once on many goroutines: each has choices of its own.
		rng := rand.New(rand.NewPCG(seed, uint64(len(ev.EventID))+hash(ev.EventID)))
		pause(ctx, time.Duration(rng.IntN(300))*time.Millisecond)
		switch rng.IntN(5) {
		case 0: // nobody looks
			<-ctx.Done()
			return nil, context.Cause(ctx)
		case 1: // looked at, and the time ran out
			<-ready
			stop, done := context.WithCancel(ctx)
			go conn.Stream(stop, "userQuestions/attachWait", obj{"sessionId": ev.SessionID, "callId": ev.Request.Wait.CallID}, func(json.RawMessage) error { return nil })
			defer done()
			pause(ctx, time.Duration(rng.IntN(200))*time.Millisecond)
			data := []byte(`{"code":"ASK_TIMED_OUT"}`)
			return nil, &jsonrpc.Fault{Code: jsonrpc.CodeApplication, Message: "timed out", Data: data}
		}
		text := "now " + id.New()
		l.run.led.note(func() { l.run.led.submitted[text] = true })
		return obj{"answers": []obj{{"id": ev.Request.Questions[0].ID, "selected": []string{}, "custom": text}}}, nil
	}))
	close(ready)
	if err != nil {
		return nil // killed already
	}
	// The other half of a person: what is continued is answered late.
	err = conn.Stream(ctx, "host/follow", obj{}, l.listed)
	conn.Close(jsonrpc.CloseNormal, "")
	conn.Wait()
	if !l.fails && !l.dead.Load() && ctx.Err() == nil && err != nil {
		return l.settled(ctx, l.fate("host/follow", err))
	}
	return nil
}

func hash(text string) (h uint64) {
	for _, c := range []byte(text) {
		h = h*31 + uint64(c)
	}
	return h
}

// listed keeps the continued asks of the list.
func (l *load) listed(raw json.RawMessage) error {
	type row struct {
		ID     string
		Active []struct {
			CallID, State string
			Questions     []struct{ ID string }
		}
	}
	var item struct{ Sessions, Upsert []row }
	if err := json.Unmarshal(raw, &item); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range append(item.Sessions, item.Upsert...) {
		for _, a := range r.Active {
			if a.State == "continued" && len(l.asks) < 4096 {
				l.asks = append(l.asks, listed{r.ID, a.CallID, a.Questions[0].ID})
			}
		}
	}
	return nil
}

// latecomer answers what is continued, by socket and by POST in turn, sometimes
// twice under one submission.
func (l *load) latecomer(ctx context.Context, rng *rand.Rand) error {
	conn, err := l.connect(ctx, nil)
	if err != nil {
		return nil // killed already
	}
	defer func() { conn.Close(jsonrpc.CloseNormal, ""); conn.Wait() }()
	roads := []caller{conn.Call, func(ctx context.Context, method string, params, result any) error {
		return l.post(ctx, l.run.tokens.answer, method, params, result)
	}}
	led := l.run.led
	for n := 0; ctx.Err() == nil && !l.dead.Load(); n++ {
		var a listed
		l.mu.Lock()
		if len(l.asks) > 0 {
			a = l.asks[rng.IntN(len(l.asks))]
		}
		l.mu.Unlock()
		if a.call == "" {
			pause(ctx, 5*time.Millisecond)
			continue
		}
		text, submission := fmt.Sprint("late ", n, " ", id.New()), id.New()
		led.note(func() { led.submitted[text] = true })
		for range 1 + rng.IntN(2) {
			var out struct{ Accepted bool }
			if err := roads[rng.IntN(2)](ctx, "userQuestions/answer", answer(a.session, a.call, a.question, text, submission), &out); err != nil {
				if err := l.fate("userQuestions/answer", err); err != nil {
					return l.settled(ctx, err)
				}
				continue
			}
			if out.Accepted {
				l.confirmed()
				led.note(func() {
					led.sessions[a.session] = true // its making may have gone unheard
					led.accepted = append(led.accepted, acceptance{a.session, a.call, submission, text})
				})
			}
		}
	}
	return nil
}

// prompter starts sessions of the host's own agents.
func (l *load) prompter(ctx context.Context, rng *rand.Rand) error {
	call, leave, err := l.overSocket(ctx)
	if err != nil {
		return nil // killed already
	}
	defer leave()
	led := l.run.led
	for range 6 {
		message := id.New()
		var out struct{ SessionID, MessageID string }
		if err := call(ctx, "session/create", obj{"text": "go " + message, "messageId": message}, &out); err != nil {
			return l.settled(ctx, l.fate("session/create", err))
		}
		l.confirmed()
		led.note(func() {
			led.sessions[out.SessionID] = true
			led.prompts = append(led.prompts, note{out.SessionID, out.MessageID})
		})
		pause(ctx, time.Duration(rng.IntN(150))*time.Millisecond)
	}
	return nil
}
