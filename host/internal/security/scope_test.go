package security

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"meanwhile/host/jsonrpc"
)

// scopes says who may call what: the rules' own table.
func scopes() map[string]string {
	return map[string]string{
		"session/create": "admin", "session/send": "admin", "session/cancel": "admin", "session/continue": "admin",
		"session/fork": "admin", "session/rename": "admin", "session/archive": "admin", "session/delete": "admin",
		"token/create": "admin", "token/list": "admin", "token/revoke": "admin", "login/create": "admin", "host/backup": "admin",
		"host/follow": "read", "session/follow": "read",
		"userQuestions/attachWait": "answer", "userQuestions/answer": "answer", "inbox/remove": "answer", "remote/settle": "answer",
		"session/open": "ask", "userQuestions/ask": "ask", "userQuestions/await": "ask", "userQuestions/withdraw": "ask",
		"inbox/claim": "ask", "inbox/admit": "ask",
		// Who may answer may be called to it.
		"push/key": "answer", "push/subscribe": "answer", "push/unsubscribe": "answer", "notify/test": "answer", "notify/status": "read",
	}
}

func codeOf(err error) string {
	var refused *jsonrpc.Error
	if !errors.As(err, &refused) {
		return ""
	}
	var data struct{ Code string }
	_ = json.Unmarshal(refused.Data, &data) // a fault has none
	return data.Code
}

// Every method of the wire with every scope, by POST, by socket, and over the
// socket of the command line, which may not answer.
func TestEveryMethod(t *testing.T) {
	s := newSite(t)
	want := scopes()
	methods := s.App().Methods()
	for _, m := range methods {
		if want[m.Method] != m.Scope {
			t.Errorf("the host takes %s with scope %q, the table here says %q", m.Method, m.Scope, want[m.Method])
		}
	}
	if len(methods) != len(want) {
		t.Errorf("the host takes %d methods, the table has %d", len(methods), len(want))
	}
	local := s.Local()
	for _, kind := range []string{"read", "answer", "ask", "admin"} {
		socket := s.Connect("socket", kind)
		for _, m := range methods {
			refused := m.Scope != kind
			_, body := s.Post(s.tokens[kind], m.Method, map[string]any{})
			var out struct{ Error *jsonrpc.Error }
			if err := json.Unmarshal(body, &out); err != nil {
				t.Fatal(err)
			}
			got := ""
			if out.Error != nil {
				got = codeOf(out.Error)
			}
			if (got == "MISSING_SCOPE") != refused {
				t.Errorf("POST %s with %s: %s", m.Method, kind, body)
			}
			if !refused && m.Stream && got != "STREAM_NEEDS_SOCKET" {
				t.Errorf("POST %s, a stream: %s", m.Method, body)
			}
			if m.Method == "host/follow" && !refused {
				continue // has no end
			}
			if got := codeOf(socket.Try(m.Method, map[string]any{}, nil)); (got == "MISSING_SCOPE") != refused {
				t.Errorf("socket: %s with %s: code %q", m.Method, kind, got)
			}
		}
	}
	for _, m := range methods {
		if m.Scope != "answer" {
			continue
		}
		if got := codeOf(local.Try(m.Method, map[string]any{}, nil)); got != "MISSING_SCOPE" {
			t.Errorf("the command line's socket may call %s: code %q", m.Method, got)
		}
	}
	if got := codeOf(s.Connect("far", "admin").Try("host/backup", map[string]any{}, nil)); got != "LOCAL_ONLY" {
		t.Errorf("a backup over the network: code %q, want LOCAL_ONLY", got)
	}
}

// No token can be made that asks and answers, by any door that makes tokens.
func TestNobodyAsksAndAnswers(t *testing.T) {
	s := newSite(t)
	admin := s.tokens["admin"]
	for _, scopes := range [][]string{{"ask", "answer"}, {"answer", "read", "ask"}, {"read", "answer", "ask", "admin"}, {}, {"all"}} {
		if status, body := s.Post(admin, "token/create", map[string]any{"label": "both", "scopes": scopes}); status != 200 || !slices.Contains([]string{"BAD_SCOPE"}, codeOfBody(t, body)) {
			t.Errorf("token with %v: %d %s", scopes, status, body)
		}
	}
}

func codeOfBody(t *testing.T, body json.RawMessage) string {
	t.Helper()
	var out struct{ Error *jsonrpc.Error }
	if err := json.Unmarshal(body, &out); err != nil {
		t.Fatal(err)
	}
	if out.Error == nil {
		return ""
	}
	return codeOf(out.Error)
}

// An asker reaches only the sessions that its token opened, and no one's answers.
func TestAskersStayApart(t *testing.T) {
	s := newSite(t)
	var mine struct{ SessionID, CallID string }
	call := func(token, method string, params map[string]any) json.RawMessage {
		_, body := s.Post(token, method, params)
		return body
	}
	decode := func(body json.RawMessage) {
		t.Helper()
		var out struct{ Result json.RawMessage }
		if err := json.Unmarshal(body, &out); err != nil || json.Unmarshal(out.Result, &mine) != nil {
			t.Fatalf("%s", body)
		}
	}
	decode(call(s.tokens["ask"], "session/open", map[string]any{"agent": map[string]any{"kind": "external", "name": "a"}, "key": "k"}))
	decode(call(s.tokens["ask"], "userQuestions/ask", map[string]any{"sessionId": mine.SessionID, "timeout": 600, "holdMs": 1,
		"questions": []any{map[string]any{"id": "q", "question": "Which?"}}}))
	session := mine.SessionID
	other, _ := s.Token("other", "ask")
	for method, params := range map[string]map[string]any{
		"userQuestions/ask":      {"sessionId": session, "holdMs": 1, "questions": []any{map[string]any{"id": "q", "question": "Which?"}}},
		"userQuestions/await":    {"sessionId": session, "callId": mine.CallID, "holdMs": 1},
		"userQuestions/withdraw": {"sessionId": session, "callId": mine.CallID},
		"inbox/claim":            {"sessionId": session},
		"inbox/admit":            {"sessionId": session, "messageIds": []string{"m"}},
	} {
		if code := codeOfBody(t, call(other, method, params)); code == "" {
			t.Errorf("%s on another token's session was taken", method)
		}
	}
	// The same key of another token is another session.
	decode(call(other, "session/open", map[string]any{"agent": map[string]any{"kind": "external", "name": "a"}, "key": "k"}))
	if mine.SessionID == session {
		t.Error("another token's key opened the first one's session")
	}
}
