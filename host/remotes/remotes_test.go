package remotes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"meanwhile/host/agent"
	"meanwhile/host/agent/agenttest"
	"meanwhile/host/auth"
	"meanwhile/host/jsonrpc"
	"meanwhile/host/outside"
	"meanwhile/host/question"
	"meanwhile/host/session"
)

const everything = auth.Scopes(auth.Read | auth.Answer | auth.Admin)

// methods lists every method with its scope and the members it must have.
var methods = []struct {
	name   string
	scope  string
	stream bool
	needs  []string
	params obj // complete, of a session that does not exist
}{
	{name: "session/create", scope: admin, params: obj{}},
	{name: "session/send", scope: admin, needs: []string{"sessionId", "text"}, params: obj{"sessionId": "s", "text": "x"}},
	{name: "session/cancel", scope: admin, needs: []string{"sessionId"}, params: obj{"sessionId": "s"}},
	{name: "session/continue", scope: admin, needs: []string{"sessionId"}, params: obj{"sessionId": "s"}},
	{name: "session/fork", scope: admin, needs: []string{"sessionId"}, params: obj{"sessionId": "s"}},
	{name: "session/rename", scope: admin, needs: []string{"sessionId", "title"}, params: obj{"sessionId": "s", "title": "x"}},
	{name: "session/archive", scope: admin, needs: []string{"sessionId"}, params: obj{"sessionId": "s"}},
	{name: "session/delete", scope: admin, needs: []string{"sessionId"}, params: obj{"sessionId": "s"}},
	{name: "host/follow", scope: read, stream: true, params: obj{}},
	{name: "session/follow", scope: read, stream: true, needs: []string{"sessionId"}, params: obj{"sessionId": "s"}},
	{name: "userQuestions/attachWait", scope: answer, stream: true, needs: []string{"sessionId", "callId"}, params: obj{"sessionId": "s", "callId": "c"}},
	{name: "userQuestions/answer", scope: answer, needs: []string{"sessionId", "callId", "answer", "submissionId"}, params: obj{"sessionId": "s", "callId": "c", "answer": obj{}, "submissionId": "m"}},
	{name: "inbox/remove", scope: answer, needs: []string{"sessionId", "messageId"}, params: obj{"sessionId": "s", "messageId": "m"}},
	{name: "session/open", scope: ask, params: obj{"agent": obj{"kind": "external", "name": "bot"}}},
	{name: "userQuestions/ask", scope: ask, needs: []string{"sessionId", "questions"}, params: obj{"sessionId": "s", "questions": []obj{{"id": "q", "question": "Why?"}}}},
	{name: "userQuestions/await", scope: ask, needs: []string{"sessionId", "callId"}, params: obj{"sessionId": "s", "callId": "c"}},
	{name: "userQuestions/withdraw", scope: ask, needs: []string{"sessionId", "callId"}, params: obj{"sessionId": "s", "callId": "c"}},
	{name: "inbox/claim", scope: ask, needs: []string{"sessionId"}, params: obj{"sessionId": "s"}},
	{name: "inbox/admit", scope: ask, needs: []string{"sessionId", "messageIds"}, params: obj{"sessionId": "s", "messageIds": []string{"m"}}},
	{name: "token/create", scope: admin, params: obj{"label": "x", "scopes": []string{"read"}}},
	{name: "token/list", scope: admin, params: obj{}},
	{name: "token/revoke", scope: admin, needs: []string{"id"}, params: obj{"id": "x"}},
	{name: "login/create", scope: admin, params: obj{}},
}

var errSeen = errors.New("seen")

// invoke calls a method of either kind; a stream ends with its first item.
func invoke(c *jsonrpc.Conn, method string, isStream bool, params obj) error {
	if !isStream {
		return c.Call(context.Background(), method, params, nil)
	}
	err := c.Stream(context.Background(), method, params, func(json.RawMessage) error { return errSeen })
	if errors.Is(err, errSeen) {
		return nil
	}
	return err
}

func TestScopes(t *testing.T) {
	r := newRig(t)
	conns := map[string]*jsonrpc.Conn{}
	for _, s := range []auth.Scope{auth.Read, auth.Answer, auth.Ask, auth.Admin} {
		name := auth.Scopes(s).String()
		conns[name] = r.connect(name, auth.Scopes(s), nil)
	}
	for _, m := range methods {
		for scope, conn := range conns {
			err := invoke(conn, m.name, m.stream, m.params)
			refused := false
			if err != nil {
				code, _ := codeOf(t, err)
				refused = code == "MISSING_SCOPE"
			}
			if want := scope != m.scope; refused != want {
				t.Errorf("%s with scope %s: %v, want refused for its scope: %v", m.name, scope, err, want)
			}
		}
	}
}

func TestParamsAreStrict(t *testing.T) {
	r := newRig(t)
	conns := map[string]*jsonrpc.Conn{
		ask: r.connect("asker", auth.Scopes(auth.Ask), nil),
	}
	for _, s := range []string{read, answer, admin} {
		conns[s] = r.connect(s, everything, nil)
	}
	refusedFor := func(m string, isStream bool, conn *jsonrpc.Conn, params obj, field string) {
		t.Helper()
		err := invoke(conn, m, isStream, params)
		var e *jsonrpc.Error
		if !errors.As(err, &e) || e.Code != jsonrpc.CodeInvalidParams || !strings.Contains(e.Message, `"`+field+`"`) {
			t.Errorf("%s %v: %v, want invalid params that name %q", m, params, err, field)
		}
	}
	for _, m := range methods {
		with := func(change func(obj)) obj {
			p := obj{}
			for k, v := range m.params {
				p[k] = v
			}
			change(p)
			return p
		}
		refusedFor(m.name, m.stream, conns[m.scope], with(func(p obj) { p["sesionId"] = "s" }), "sesionId")
		refusedFor(m.name, m.stream, conns[m.scope], with(func(p obj) { p["SessionId"] = "s" }), "SessionId")
		for _, field := range m.needs {
			refusedFor(m.name, m.stream, conns[m.scope], with(func(p obj) { delete(p, field) }), field)
		}
	}
}

func TestNoSuchSession(t *testing.T) {
	r := newRig(t)
	person, asker := r.connect("person", everything, nil), r.connect("asker", auth.Scopes(auth.Ask), nil)
	for _, m := range methods {
		if !slices.Contains(m.needs, "sessionId") || m.name == "userQuestions/attachWait" {
			continue
		}
		conn := person
		if m.scope == ask {
			conn = asker
		}
		if code, _ := codeOf(t, invoke(conn, m.name, m.stream, m.params)); code != "NO_SESSION" {
			t.Errorf("%s of a session that is not there: %s, want NO_SESSION", m.name, code)
		}
	}
	// An unknown wait yields no frame and no error.
	items := 0
	err := person.Stream(context.Background(), "userQuestions/attachWait", obj{"sessionId": "s", "callId": "c"}, func(json.RawMessage) error { items++; return nil })
	if err != nil || items != 0 {
		t.Errorf("attachWait of nothing: %d items, %v", items, err)
	}
}

func TestWireCodes(t *testing.T) {
	for _, tc := range []struct {
		err  error
		code string
	}{
		{&question.Error{Code: "BAD_ANSWER", Field: "answers[0]", Message: "no"}, "BAD_ANSWER"},
		{&outside.Error{Code: "UNKNOWN_CALL", Field: "callId", Message: "no"}, "UNKNOWN_CALL"},
		{fmt.Errorf("x: %w", session.ErrNoSession), "NO_SESSION"},
		{&session.Fault{Session: "s", Seq: 3, Reason: "bits"}, "SESSION_DAMAGED"},
		{session.ErrResync, "RESYNC"},
		{fmt.Errorf("x: %w", session.ErrForkAt), "BAD_PARAMS"},
		{agent.ErrNotLive, "CALLER_NOT_LIVE"},
		{agent.ErrNothing, "NOTHING_TO_CONTINUE"},
		{auth.ErrAskAnswer, "BAD_SCOPE"},
		{question.ErrClosed, "HOST_STOPPING"},
	} {
		f := Wire(tc.err)
		if f == nil || f.Code != jsonrpc.CodeApplication {
			t.Errorf("%v: %v, want a business error", tc.err, f)
			continue
		}
		var data struct{ Name, Code, Field string }
		if err := json.Unmarshal(f.Data, &data); err != nil || data.Code != tc.code || data.Name != "UserQuestionError" {
			t.Errorf("%v: data %s, want code %s", tc.err, f.Data, tc.code)
		}
	}
	if f := Wire(errors.New("the disk's own words")); f != nil {
		t.Errorf("an unknown error went out as %v", f)
	}
}

// A prompt that is refused leaves no session behind.
func TestCreateRefused(t *testing.T) {
	r := newRig(t, agenttest.Say("hello"))
	c := r.connect("person", everything, nil)
	if err := c.Call(context.Background(), "session/create", obj{"text": "hi", "messageId": strings.Repeat("m", 201)}, nil); err == nil || !strings.Contains(err.Error(), "message id") {
		t.Errorf("got %v, want the message id refused", err)
	}
	if rows := r.options.Sessions.List(); len(rows) != 0 {
		t.Errorf("%d sessions are left", len(rows))
	}
}

func TestSessionLife(t *testing.T) {
	r := newRig(t, agenttest.Say("hello"))
	c := r.connect("person", everything, nil)
	made := call[createResult](t, c, "session/create", obj{"title": "first", "text": "hi", "messageId": "m1"})
	if made.MessageID != "m1" {
		t.Errorf("created %+v, want the message's own id", made)
	}
	a, err := r.options.Agents.Resume(context.Background(), made.SessionID)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Driver().Settled(context.Background()); err != nil {
		t.Fatal(err)
	}
	call[none](t, c, "session/rename", obj{"sessionId": made.SessionID, "title": "second"})
	call[none](t, c, "session/archive", obj{"sessionId": made.SessionID})
	fork := call[createResult](t, c, "session/fork", obj{"sessionId": made.SessionID, "title": "copy"})
	row, _ := r.options.Sessions.Row(made.SessionID)
	if row.Title != "second" || !row.Archived || row.Status != "completed" {
		t.Errorf("row %+v, want it renamed, archived and completed", row)
	}
	if copied, _ := r.options.Sessions.Row(fork.SessionID); copied.Title != "copy" || copied.ParentSession != made.SessionID || copied.Archived {
		t.Errorf("fork %+v", copied)
	}
	if got := call[cancelResult](t, c, "session/cancel", obj{"sessionId": made.SessionID}); got.Cancelled {
		t.Error("a turn that is over was cancelled")
	}
	err = c.Call(context.Background(), "session/continue", obj{"sessionId": made.SessionID}, nil)
	if code, _ := codeOf(t, err); code != "NOTHING_TO_CONTINUE" {
		t.Errorf("continue after a completed turn: %v", err)
	}
	call[none](t, c, "session/delete", obj{"sessionId": made.SessionID})
	err = c.Call(context.Background(), "session/send", obj{"sessionId": made.SessionID, "text": "x"}, nil)
	if code, _ := codeOf(t, err); code != "NO_SESSION" {
		t.Errorf("send after delete: %v", err)
	}
}

// A page that lost the response sends the same press again.
func TestSendTwiceIsOneMessage(t *testing.T) {
	r := newRig(t) // no model: the message waits
	c := r.connect("person", everything, nil)
	made := call[createResult](t, c, "session/create", obj{})
	for range 2 {
		got := call[sendResult](t, c, "session/send", obj{"sessionId": made.SessionID, "text": "hi", "messageId": "m1"})
		if got.MessageID != "m1" {
			t.Errorf("message %q, want m1", got.MessageID)
		}
	}
	if row, _ := r.options.Sessions.Row(made.SessionID); len(row.Queued) != 1 {
		t.Errorf("%d messages wait, want 1", len(row.Queued))
	}
	if got := call[removeResult](t, c, "inbox/remove", obj{"sessionId": made.SessionID, "messageId": "m1"}); !got.Removed {
		t.Error("the waiting message was not removed")
	}
}

const storeAsk = `[{"id":"store","question":"Which store?","options":[{"label":"Postgres"},{"label":"SQLite"}]}]`

// answering plays a person at a card: it claims each request and answers it.
func answering(conn func() *jsonrpc.Conn, label string, seen chan<- string) jsonrpc.HandlerFunc {
	return func(ctx context.Context, q *jsonrpc.Request) (any, error) {
		if q.Method != question.EventName {
			return nil, nil // notices
		}
		var p struct {
			SessionID string          `json:"sessionId"`
			Refused   json.RawMessage `json:"refused"`
			Request   struct {
				Wait struct {
					CallID string `json:"callId"`
				} `json:"wait"`
			} `json:"request"`
		}
		if err := json.Unmarshal(q.Params, &p); err != nil {
			return nil, err
		}
		if p.Refused != nil {
			seen <- "refused " + string(p.Refused)
			label = "SQLite"
		} else {
			claim, release := context.WithCancel(ctx)
			defer release()
			framed := make(chan struct{})
			go func() {
				_ = conn().Stream(claim, "userQuestions/attachWait", obj{"sessionId": p.SessionID, "callId": p.Request.Wait.CallID}, func(item json.RawMessage) error {
					seen <- "claimed"
					close(framed)
					return nil
				})
			}()
			<-framed
		}
		return obj{"answers": []obj{{"id": "store", "selected": []string{label}}}}, nil
	}
}

func TestOutsideAskAnsweredInTime(t *testing.T) {
	r := newRig(t)
	seen := make(chan string, 10)
	var person *jsonrpc.Conn
	ready := make(chan struct{})
	person = r.connect("person", everything, answering(func() *jsonrpc.Conn { <-ready; return person }, "Oracle", seen))
	close(ready)
	bot := r.connect("bot", auth.Scopes(auth.Ask), nil)
	s := call[openResult](t, bot, "session/open", obj{"agent": obj{"kind": "external", "name": "bot"}, "key": "k"})
	if again := call[openResult](t, bot, "session/open", obj{"agent": obj{"kind": "external", "name": "bot"}, "key": "k"}); again != s {
		t.Errorf("the same key gave %v and %v", s, again)
	}
	got := call[standingResult](t, bot, "userQuestions/ask", obj{"sessionId": s.SessionID, "questions": json.RawMessage(storeAsk), "timeout": 60})
	if got.Status != outside.Answered || string(got.Answers) != `[{"id":"store","selected":["SQLite"]}]` {
		t.Errorf("ask = %+v %s", got, got.Answers)
	}
	// "Oracle" was not offered: the host called again, and the claim stayed.
	if first, second := <-seen, <-seen; first != "claimed" || !strings.Contains(second, "BAD_ANSWER") {
		t.Errorf("the card saw %q, %q", first, second)
	}
	other := r.connect("other", auth.Scopes(auth.Ask), nil)
	err := other.Call(context.Background(), "userQuestions/await", obj{"sessionId": s.SessionID, "callId": got.CallID}, nil)
	if code, _ := codeOf(t, err); code != "NO_SESSION" {
		t.Errorf("another token's await: %v, want NO_SESSION", err)
	}
}

func TestOutsideAskAnsweredLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		bot := r.connect("bot", auth.Scopes(auth.Ask), nil)
		person := r.connect("person", everything, nil)
		s := call[openResult](t, bot, "session/open", obj{"agent": obj{"kind": "external", "name": "bot"}})
		began := time.Now()
		pending := call[standingResult](t, bot, "userQuestions/ask", obj{"sessionId": s.SessionID, "questions": json.RawMessage(storeAsk), "timeout": 30})
		if pending.Status != outside.Pending || pending.RemainingMs == nil || *pending.RemainingMs != 0 {
			t.Fatalf("ask = %+v, want pending", pending)
		}
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("the ask took %v, want its window of 30 s", took)
		}
		answer := obj{"sessionId": s.SessionID, "callId": pending.CallID, "submissionId": "press", "answer": obj{"answers": []obj{{"id": "store", "selected": []string{"Postgres"}}}}}
		want := answerResult{Accepted: true, MessageID: "press", State: "queued"}
		for range 2 { // a press is sent again after a lost response
			if diff := cmp.Diff(want, call[answerResult](t, person, "userQuestions/answer", answer)); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		}
		answer["submissionId"] = "another press"
		if code, _ := codeOf(t, person.Call(context.Background(), "userQuestions/answer", answer, nil)); code != "REPLY_QUEUED" {
			t.Errorf("a second reply: %s, want REPLY_QUEUED", code)
		}
		claimed := call[claimResult](t, bot, "inbox/claim", obj{"sessionId": s.SessionID, "holder": "p1"})
		if len(claimed.Messages) != 1 || !strings.Contains(string(claimed.Messages[0]), "Postgres") {
			t.Fatalf("claimed %s", claimed.Messages)
		}
		if got := call[admitResult](t, bot, "inbox/admit", obj{"sessionId": s.SessionID, "messageIds": []string{"press"}}); len(got.Admitted) != 1 {
			t.Errorf("admitted %v", got)
		}
		answer["submissionId"] = "press"
		want.State = "admitted"
		if diff := cmp.Diff(want, call[answerResult](t, person, "userQuestions/answer", answer)); diff != "" {
			t.Errorf("answer after admission (-want +got):\n%s", diff)
		}
	})
}

// Deleting a session ends the ask that an outside agent waits for.
func TestDeleteEndsOutsideAsk(t *testing.T) {
	r := newRig(t)
	asked := make(chan struct{}, 1)
	person := r.connect("person", everything, func(ctx context.Context, q *jsonrpc.Request) (any, error) {
		if q.Method != question.EventName {
			return nil, nil
		}
		asked <- struct{}{}
		<-ctx.Done() // the host takes its question back
		asked <- struct{}{}
		return nil, context.Cause(ctx)
	})
	bot := r.connect("bot", auth.Scopes(auth.Ask), nil)
	s := call[openResult](t, bot, "session/open", obj{"agent": obj{"kind": "external", "name": "bot"}})
	done := make(chan error, 1)
	go func() {
		done <- bot.Call(context.Background(), "userQuestions/ask", obj{"sessionId": s.SessionID, "questions": json.RawMessage(storeAsk), "timeout": -1}, nil)
	}()
	<-asked
	call[none](t, person, "session/delete", obj{"sessionId": s.SessionID})
	<-asked
	if err := <-done; err == nil {
		t.Error("the ask of a deleted session was answered")
	}
	if n := r.options.Questions.Stats().Open; n != 0 {
		t.Errorf("%d asks open after the delete", n)
	}
}

func TestTokens(t *testing.T) {
	r := newRig(t)
	c := r.connect("person", everything, nil)
	for _, tc := range []struct {
		name   string
		params obj
		code   string
		field  string
	}{
		{"both sides", obj{"label": "x", "scopes": []string{"ask", "answer"}}, "BAD_SCOPE", "scopes"},
		{"unknown scope", obj{"label": "x", "scopes": []string{"all"}}, "BAD_SCOPE", "scopes"},
		{"no scope", obj{"label": "x"}, "BAD_SCOPE", "scopes"},
		{"no label", obj{"scopes": []string{"ask"}}, "BAD_LABEL", "label"},
	} {
		code, field := codeOf(t, c.Call(context.Background(), "token/create", tc.params, nil))
		if code != tc.code || field != tc.field {
			t.Errorf("%s: %s %s, want %s %s", tc.name, code, field, tc.code, tc.field)
		}
	}
	made := call[tokenResult](t, c, "token/create", obj{"label": "bot", "scopes": []string{"ask"}})
	if _, err := r.options.Tokens.Verify(made.Token); err != nil {
		t.Errorf("the token is not good: %v", err)
	}
	list := call[tokenList](t, c, "token/list", obj{})
	if len(list.Tokens) != 1 || list.Tokens[0].Label != "bot" || !slices.Equal(list.Tokens[0].Scopes, []string{"ask"}) {
		t.Errorf("list %+v", list)
	}
	call[none](t, c, "token/revoke", obj{"id": made.ID})
	if _, err := r.options.Tokens.Verify(made.Token); err == nil {
		t.Error("the token is good after its revocation")
	}
	url := call[loginResult](t, c, "login/create", obj{}).URL
	_, code, _ := strings.Cut(url, "#code=")
	if _, token, err := r.options.Codes.Redeem("x", code, ""); err != nil || token.Scopes != auth.LoginScopes {
		t.Errorf("the link %s does not sign in: %v", url, err)
	}
}

func TestRevokedTokenLosesItsConnection(t *testing.T) {
	r := newRig(t)
	admin := r.connect("person", everything, nil)
	_, token, err := r.options.Tokens.Create("phone", auth.Scopes(auth.Read))
	if err != nil {
		t.Fatal(err)
	}
	phone := r.connectAs(Principal(token), nil)
	call[none](t, admin, "token/revoke", obj{"id": token.ID})
	<-phone.Done()
	if err := admin.Call(context.Background(), "ping", obj{}, nil); err != nil {
		t.Errorf("another token's connection: %v", err)
	}
}
