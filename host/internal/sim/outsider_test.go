package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"meanwhile/host/gateway"
	"meanwhile/host/jsonrpc"
	"meanwhile/shared/event/value"
	"meanwhile/shared/projection"
)

// outsider is an agent of another program, with one process that lives
// throughout. It calls over a connection of its own, which it loses at times.
type outsider struct {
	w       *World
	name    string
	session string
	dice    *dice
	stop    chan struct{}
	done    chan struct{}

	line  *line
	lines uint64 // so far
	conn  *jsonrpc.Conn

	requests map[string]string // request id → the questions it asked
	calls    map[string]string // request id → call id
	answers  map[string]handed // by call id
	admit    []string
}

// handed is an answer that the agent was given.
type handed struct{ message, batch string }

func newOutsider(w *World, i int) *outsider {
	o := &outsider{w: w, name: fmt.Sprint("agent ", i), dice: newDice(w.seed, 50+uint64(i)), stop: make(chan struct{}), done: make(chan struct{}),
		requests: map[string]string{}, calls: map[string]string{}, answers: map[string]handed{}}
	out, err := w.host.post(o.principal(), "session/open", map[string]any{"key": o.name, "agent": map[string]string{"kind": "external", "name": o.name}})
	if err != nil {
		w.failf("%s opens a session: %v", o.name, err)
	}
	v, _ := value.Parse(out)
	o.session = v.Get("sessionId").Text()
	w.sessions = append(w.sessions, o.session)
	go o.live()
	return o
}

func (o *outsider) principal() gateway.Principal {
	return gateway.Principal{TokenID: "token " + o.name, Label: o.name, Scopes: gateway.Scopes{"ask"}}
}

// end stops the agent and waits for it.
func (o *outsider) end() {
	close(o.stop)
	<-o.done
	o.hangUp()
}

func (o *outsider) hangUp() {
	if o.conn != nil {
		o.conn.Close(jsonrpc.CloseNormal, "")
		o.conn.Wait()
		o.conn = nil
	}
}

func (o *outsider) live() {
	defer close(o.done)
	for n := 0; ; n++ {
		t := time.NewTimer(o.dice.think())
		select {
		case <-t.C:
		case <-o.stop:
			t.Stop()
			return
		}
		switch k := o.dice.pick(10); {
		case k < 3 && len(o.requests) < asksMax:
			id := fmt.Sprint("request-", n)
			o.requests[id] = fmt.Sprintf(`"questions":%s,"timeout":%d`, drawQuestions(o.dice), drawTimeout(o.dice))
			if o.dice.in(8) {
				o.requests[id] = fmt.Sprintf(`"questions":%s,"timeout":-1`, drawQuestions(o.dice))
			}
			o.ask(id)
		case k < 4 && len(o.requests) > 0: // the same again, as a client does that lost the response
			ids := sortedKeys(o.requests)
			o.ask(ids[o.dice.pick(len(ids))])
		case k < 6 && len(o.calls) > 0:
			ids := sortedKeys(o.calls)
			o.await(o.calls[ids[o.dice.pick(len(ids))]])
		case k < 7 && len(o.calls) > 0:
			ids := sortedKeys(o.calls)
			o.call("userQuestions/withdraw", fmt.Sprintf(`"callId":%q`, o.calls[ids[o.dice.pick(len(ids))]]))
		case k < 8:
			o.claim()
		case k < 9:
			o.admitAll()
		default:
			if o.line != nil && o.dice.in(2) {
				o.line.cut()
			}
			o.hangUp()
		}
	}
}

// call makes one call in the session and may give up on it.
func (o *outsider) call(method, params string) (value.Value, bool) {
	if o.dice.in(5) {
		return o.posted(method, params)
	}
	if o.conn == nil && !o.connect() {
		return value.Value{}, false
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second+o.dice.upTo(40*time.Second))
	defer cancel()
	var out json.RawMessage
	err := o.conn.Call(ctx, method, json.RawMessage(fmt.Sprintf(`{"sessionId":%q,%s}`, o.session, params)), &out)
	if err != nil {
		o.w.notef("%s: %v", o.name, err)
		select {
		case <-o.conn.Done():
			o.hangUp()
		default:
		}
		return value.Value{}, false
	}
	o.w.notef("%s: %s %s: %s", o.name, method, params, out)
	v, err := value.Parse(out)
	return v, err == nil
}

// posted is call over POST.
func (o *outsider) posted(method, params string) (value.Value, bool) {
	raw, err := o.w.post(o.principal(), method, []byte(fmt.Sprintf(`{"sessionId":%q,%s}`, o.session, params)))
	o.w.notef("%s posts %s %s: %s %v", o.name, method, params, raw, err)
	if err != nil {
		return value.Value{}, false
	}
	v, err := value.Parse(raw)
	return v, err == nil
}

func (o *outsider) connect() bool {
	o.lines++
	l := newLine(o.w.seed, 1<<40+o.lines<<1)
	if !o.w.dial(l, o.principal()) {
		return false
	}
	o.line = l
	o.conn = jsonrpc.NewConn(clientEnd{l}, nil, jsonrpc.Options{})
	ctx, cancel := context.WithTimeout(context.Background(), connectMax)
	defer cancel()
	err := o.conn.Call(ctx, "initialize", json.RawMessage(`{"protocol":1,"client":{"name":"agent","version":"1"}}`), nil)
	if err != nil {
		o.hangUp()
	}
	return err == nil
}

// holder names one of the agent's two processes.
func (o *outsider) holder() string {
	return fmt.Sprintf(`"holder":%q`, fmt.Sprint(o.name, o.dice.pick(4)/3))
}

func (o *outsider) hold() int { return 1 + o.dice.pick(8000) }

func (o *outsider) ask(id string) {
	v, ok := o.call("userQuestions/ask", fmt.Sprintf(`"requestId":%q,%s,"holdMs":%d,%s`, id, o.requests[id], o.hold(), o.holder()))
	if !ok {
		return
	}
	call := v.Get("callId").Text()
	if had := o.calls[id]; had != "" && had != call {
		o.w.failf("%s: request %s is call %s and was %s", o.name, id, call, had)
	}
	o.calls[id] = call
	o.standing(v)
}

func (o *outsider) await(call string) {
	if v, ok := o.call("userQuestions/await", fmt.Sprintf(`"callId":%q,"holdMs":%d,%s`, call, o.hold(), o.holder())); ok {
		o.standing(v)
	}
}

// standing checks what an ask came to.
func (o *outsider) standing(v value.Value) {
	if v.Get("status").Text() != "answered" {
		return
	}
	as, _ := projection.AnswersOf(v.Get("answers"))
	id := v.Get("messageId").Text()
	if id != "" {
		o.admit = append(o.admit, id)
	}
	call, batch := v.Get("callId").Text(), canonical(as)
	// A reply that was handed over and not acknowledged may still be taken back.
	if had, ok := o.answers[call]; ok && had.batch != batch && !o.w.wasRemoved(had.message) {
		o.w.failf("%s was handed %s and then %s for %s", o.name, had.batch, batch, call)
	}
	o.answers[call] = handed{id, batch}
	if !o.w.submitted(o.session, call, batch) {
		o.w.failf("%s was handed %s for %s, which nobody submitted", o.name, batch, call)
	}
}

// claim takes what waits and returns how much it was.
func (o *outsider) claim() (n int, ok bool) {
	v, ok := o.call("inbox/claim", o.holder())
	if !ok {
		return 0, false
	}
	for _, m := range v.Get("messages").Items() {
		o.admit = append(o.admit, m.Get("id").Text())
		n++
	}
	return n, true
}

func (o *outsider) admitAll() bool {
	ids, err := json.Marshal(o.admit)
	if err != nil || len(o.admit) == 0 {
		return true
	}
	_, ok := o.call("inbox/admit", fmt.Sprintf(`"messageIds":%s`, ids))
	if ok {
		o.admit = nil
	}
	return ok
}

// drain takes everything that waits, at the end.
func (o *outsider) drain() {
	for range 50 {
		n, ok := o.claim()
		if ok && o.admitAll() && n == 0 {
			return
		}
		time.Sleep(5 * time.Second)
	}
	o.w.failf("%s cannot take what waits for it", o.name)
}
