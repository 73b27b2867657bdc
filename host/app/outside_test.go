package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"

	"meanwhile/host/app"
	"meanwhile/host/gateway"
	"meanwhile/host/internal/hosttest"
	"meanwhile/host/jsonrpc"
)

// outsider is an agent from another program, over real sockets, with a token
// that may only ask. person answers.
type outsider struct {
	t       *testing.T
	h       *hosttest.Host
	token   string
	session string
	person  *hosttest.Client
}

type standing struct {
	Status      string
	CallID      string
	Answers     []struct{ Selected []string }
	MessageID   string
	RemainingMs int64
	Shown       *bool
}

func newOutsider(t *testing.T) *outsider {
	h := hosttest.Start(t, hosttest.Options{})
	o := &outsider{t: t, h: h}
	o.token, _ = h.Token("ci", "ask")
	o.person = person(h, "desk")
	var opened struct{ SessionID string }
	h.ConnectWith(o.token).Call("session/open", obj{"agent": obj{"kind": "external", "name": "ci"}, "key": "k"}, &opened)
	o.session = opened.SessionID
	return o
}

const storeQuestion = `[{"id":"store","question":"Which store?","options":[{"label":"SQLite"},{"label":"Postgres"}]}]`

func (o *outsider) ask(c *hosttest.Client, requestID string, timeout int, holdMs int) (st standing) {
	o.t.Helper()
	c.Call("userQuestions/ask", obj{"sessionId": o.session, "requestId": requestID, "questions": json.RawMessage(storeQuestion),
		"timeout": timeout, "holdMs": holdMs, "holder": "h1"}, &st)
	return st
}

func (o *outsider) await(c *hosttest.Client, callID, holder string, holdMs int) (st standing) {
	o.t.Helper()
	c.Call("userQuestions/await", obj{"sessionId": o.session, "callId": callID, "holdMs": holdMs, "holder": holder}, &st)
	return st
}

func (o *outsider) late(callID, submission string) bool {
	o.t.Helper()
	var out struct{ Accepted bool }
	o.person.Call("userQuestions/answer", obj{"sessionId": o.session, "callId": callID, "submissionId": submission,
		"answer": obj{"answers": []obj{{"id": "store", "selected": []string{"Postgres"}}}}}, &out)
	return out.Accepted
}

// admitted are the replies that the log says were read.
func (o *outsider) admitted() (ids []string) {
	o.t.Helper()
	o.person.Follow("session/follow", obj{"sessionId": o.session}, func(raw json.RawMessage) bool {
		var item struct {
			Header json.RawMessage
			Seq    int64
			Events []hosttest.Event
		}
		if err := json.Unmarshal(raw, &item); err != nil {
			o.t.Fatal(err)
		}
		for _, e := range item.Events {
			var m struct{ ID string }
			if e.Type == "user/message" && json.Unmarshal(e.Data, &m) == nil {
				ids = append(ids, m.ID)
			}
		}
		return item.Header == nil
	})
	return ids
}

func (o *outsider) want(st standing, status string) standing {
	o.t.Helper()
	if st.Status != status {
		o.t.Fatalf("got %+v, want %s", st, status)
	}
	return st
}

func TestOutsideAskTokenMayOnlyAsk(t *testing.T) {
	o := newOutsider(t)
	c := o.h.ConnectWith(o.token)
	for _, method := range []string{"userQuestions/answer", "remote/settle", "inbox/remove", "host/follow", "session/follow",
		"session/create", "session/delete", "token/create", "login/create", "userQuestions/attachWait"} {
		if err := c.Try(method, obj{}, nil); err == nil || !strings.Contains(err.Error(), "scope") {
			t.Errorf("%s: %v, want a refusal that names the scope", method, err)
		}
	}
}

func TestOutsideHoldThenWindowThenLateReply(t *testing.T) {
	o := newOutsider(t)
	c := o.h.ConnectWith(o.token)
	st := o.want(o.ask(c, "r1", 2, 1), "pending")
	if st.RemainingMs <= 0 || st.Shown == nil || *st.Shown {
		t.Errorf("the hold's end: %+v, want time left and shown to nobody", st)
	}
	asked := o.person.Next()
	if _, release := o.person.Claim(asked); true {
		release()
	}
	if again := o.ask(c, "r1", 2, 1); again.CallID != st.CallID || again.Shown == nil || !*again.Shown {
		t.Errorf("the same request: %+v, want ask %s, shown", again, st.CallID)
	}
	st = o.want(o.await(c, st.CallID, "h1", 20_000), "pending")
	if st.RemainingMs != 0 {
		t.Errorf("after the window: %+v", st)
	}
	<-asked.Gone
	if !o.late(st.CallID, "s1") {
		t.Fatal("a late answer was refused")
	}
	got := o.want(o.await(c, st.CallID, "h1", 20_000), "answered")
	if got.MessageID != "s1" || got.Answers[0].Selected[0] != "Postgres" {
		t.Errorf("the reply: %+v", got)
	}
	if ids := o.admitted(); len(ids) != 0 {
		t.Errorf("admitted %v before it was acknowledged", ids)
	}
	var removed struct{ Removed bool }
	o.person.Call("inbox/remove", obj{"sessionId": o.session, "messageId": "s1"}, &removed)
	if removed.Removed {
		t.Error("a reply that was handed over was taken back")
	}
	var admitted struct{ Admitted []string }
	c.Call("inbox/admit", obj{"sessionId": o.session, "messageIds": []string{"s1"}}, &admitted)
	c.Call("inbox/admit", obj{"sessionId": o.session, "messageIds": []string{"s1"}}, &admitted)
	if ids := o.admitted(); len(admitted.Admitted) != 1 || len(ids) != 1 {
		t.Errorf("acknowledged %v, admitted %v, want once", admitted.Admitted, ids)
	}
}

// A holder that goes away before it acknowledged gets the reply again, on
// whatever connection; one that called again never does.
func TestOutsideHolderKilledAroundTheAcknowledgement(t *testing.T) {
	o := newOutsider(t)
	first := o.h.ConnectWith(o.token)
	st := o.want(o.ask(first, "r1", 1, 20_000), "pending")
	if !o.late(st.CallID, "s1") {
		t.Fatal("a late answer was refused")
	}
	o.want(o.await(first, st.CallID, "h1", 20_000), "answered")
	first.Leave() // killed with the reply in hand
	second := o.h.ConnectWith(o.token)
	if got := o.want(o.await(second, st.CallID, "h2", 20_000), "answered"); got.MessageID != "s1" {
		t.Fatalf("handed over again as %+v, want the same message", got)
	}
	o.h.Restart() // the host forgets who held it
	o.person = person(o.h, "desk")
	third := o.h.ConnectWith(o.token)
	if got := o.want(o.await(third, st.CallID, "h2", 20_000), "answered"); got.MessageID != "s1" {
		t.Fatalf("after a restart %+v, want the same message", got)
	}
	if ids := o.admitted(); len(ids) != 0 {
		t.Fatalf("admitted %v though nobody acknowledged", ids)
	}
	o.want(o.await(third, st.CallID, "h2", 0), "answered") // calling again acknowledges
	third.Leave()
	var claimed struct{ Messages []json.RawMessage }
	o.h.ConnectWith(o.token).Call("inbox/claim", obj{"sessionId": o.session, "holder": "h3"}, &claimed)
	if ids := o.admitted(); len(ids) != 1 || len(claimed.Messages) != 0 {
		t.Errorf("admitted %v, handed over again %s, want once and never again", ids, claimed.Messages)
	}
}

func TestOutsideWithdrawAgainstAnswer(t *testing.T) {
	o := newOutsider(t)
	c := o.h.ConnectWith(o.token)
	withdraw := func(callID string) bool {
		t.Helper()
		var out struct{ Withdrawn bool }
		c.Call("userQuestions/withdraw", obj{"sessionId": o.session, "callId": callID}, &out)
		return out.Withdrawn
	}
	gone := o.ask(c, "r1", 1, 20_000)
	if !withdraw(gone.CallID) || o.late(gone.CallID, "s1") {
		t.Error("an answer was taken after the withdrawal")
	}
	kept := o.ask(c, "r2", 1, 20_000)
	if !o.late(kept.CallID, "s2") || withdraw(kept.CallID) {
		t.Error("an ask was withdrawn over its queued answer")
	}
	if err := c.Try("userQuestions/await", obj{"sessionId": o.session, "callId": gone.CallID}, nil); err == nil || !strings.Contains(err.Error(), "withdrew") {
		t.Errorf("await of the withdrawn ask: %v", err)
	}
	for i := range 10 { // at once: exactly one of the two
		st := o.ask(c, "race"+string(rune('0'+i)), 1, 20_000)
		var accepted, withdrawn bool
		var both sync.WaitGroup
		both.Go(func() { accepted = o.late(st.CallID, "race"+st.CallID) })
		both.Go(func() { withdrawn = withdraw(st.CallID) })
		both.Wait()
		if accepted == withdrawn {
			t.Fatalf("accepted %v and withdrawn %v", accepted, withdrawn)
		}
	}
}

// A call that blocks is waited for, over a restart too, and never continued.
func TestOutsideBlockingAskOverARestart(t *testing.T) {
	o := newOutsider(t)
	c := o.h.ConnectWith(o.token)
	st := o.want(o.ask(c, "r1", -1, 1), "waiting")
	o.want(o.await(c, st.CallID, "h1", 1), "waiting")
	o.h.Restart()
	o.person = person(o.h, "desk")
	c = o.h.ConnectWith(o.token)
	if again := o.want(o.ask(c, "r1", -1, 1), "waiting"); again.CallID != st.CallID {
		t.Errorf("the same request after a restart: %+v", again)
	}
	if !o.late(st.CallID, "s1") {
		t.Fatal("the answer was refused")
	}
	o.want(o.await(c, st.CallID, "h1", 20_000), "answered")
}

// The connection is cut at each step; the ask lives on, one card, one answer.
func TestOutsideConnectionCutAtEachStep(t *testing.T) {
	o := newOutsider(t)
	cut := func(method string, params obj, until func()) {
		t.Helper()
		c := o.h.ConnectWith(o.token)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Conn.Call(ctx, method, params, nil) }()
		if until != nil {
			until()
		}
		c.Leave()
		cancel()
		<-done
	}
	ask := obj{"sessionId": o.session, "requestId": "r1", "questions": json.RawMessage(storeQuestion), "timeout": 600, "holder": "h1"}
	cut("userQuestions/ask", ask, nil) // it may not even have been read
	var card *hosttest.Ask
	cut("userQuestions/ask", ask, func() { card = o.person.Next() })
	callID := card.Request.Wait.CallID
	cut("userQuestions/ask", ask, nil)
	cut("userQuestions/await", obj{"sessionId": o.session, "callId": callID, "holder": "h1"}, nil)
	if st := o.ask(o.h.ConnectWith(o.token), "r1", 600, 1); st.CallID != callID || st.RemainingMs == 0 {
		t.Fatalf("after the cuts: %+v, want ask %s, still open", st, callID)
	}
	card.Answer(`[{"id":"store","selected":["SQLite"]}]`)
	<-card.Gone
	cut("userQuestions/await", obj{"sessionId": o.session, "callId": callID, "holder": "h1", "holdMs": 20_000}, nil)
	got := o.want(o.await(o.h.ConnectWith(o.token), callID, "h2", 20_000), "answered")
	if got.Answers[0].Selected[0] != "SQLite" {
		t.Errorf("got %+v", got)
	}
	select {
	case second := <-o.person.Asks():
		t.Errorf("a second card: %+v", second)
	default:
	}
}

// More command lines than the host takes at once are told so; none waits unseen.
func TestTooManyCommandLinesAreTold(t *testing.T) {
	h := hosttest.Start(t, hosttest.Options{})
	const most = gateway.DefaultMaxClients * 3 / 4
	for range most {
		h.Local()
	}
	conn, err := net.Dial("unix", app.SocketPath(h.Config().Data))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = jsonrpc.Lines(conn).Read(t.Context())
	var closed *jsonrpc.CloseError
	if !errors.As(err, &closed) || !strings.Contains(closed.Reason, "connected already") {
		t.Errorf("one too many: %v, want a reason", err)
	}
}
