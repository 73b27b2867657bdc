package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"meanwhile/host/app"
	"meanwhile/host/config"
	"meanwhile/host/internal/hosttest"
	"meanwhile/host/jsonrpc"
	"meanwhile/host/session/logstore"
)

func TestMain(m *testing.M) {
	// goleveldb lets this one go a while after Close.
	pool := goleak.IgnoreTopFunction("github.com/syndtr/goleveldb/leveldb.(*DB).mpoolDrain")
	goleak.VerifyTestMain(m, goleak.Cleanup(closeIdle), pool)
}

// closeIdle lets go of what the HTTP client of a test keeps open.
func closeIdle(code int) {
	http.DefaultClient.CloseIdleConnections()
	os.Exit(code)
}

// script asks with a window of so many seconds when it is told to, and says
// what it was answered.
func script(timeout int) string {
	return `{"name":"test","rules":[
	{"when":{"tool":"ask_user_question","pending":true},"do":[{"text":"carrying on"}]},
	{"when":{"tool":"ask_user_question","failed":true},"do":[{"text":"failed: {{output}}"}]},
	{"when":{"tool":"ask_user_question"},"do":[{"text":"in time: {{answers}}"}]},
	{"when":{"reply":true},"do":[{"text":"late: {{answers}}"}]},
	{"when":{"last":"user"},"do":[{"call":"ask_user_question","arguments":{"timeout":` + strconv.Itoa(timeout) + `,"questions":[
		{"id":"store","question":"Which store?","options":[{"label":"SQLite"},{"label":"Postgres"}]}]}}]}
	]}`
}

type obj = map[string]any

// begin starts a session with a prompt.
func begin(c *hosttest.Client) (sessionID string) {
	var out struct{ SessionID string }
	c.Call("session/create", obj{"text": "go"}, &out)
	return out.SessionID
}

// says waits until the agent has said it.
func says(t *testing.T, c *hosttest.Client, sessionID, text string) []hosttest.Event {
	t.Helper()
	events := c.Until(sessionID, func(e hosttest.Event) bool {
		return e.Type == "assistant/message" && strings.Contains(string(e.Data), text)
	})
	return events
}

func person(h *hosttest.Host, label string) *hosttest.Client {
	return h.Connect(label, "read", "answer", "admin")
}

func TestAskAnsweredInTime(t *testing.T) {
	h := hosttest.Start(t, hosttest.Options{Script: script(60)})
	desk, phone := person(h, "desk"), person(h, "phone")
	session := begin(desk)
	ask, other := desk.Next(), phone.Next()
	if ask.EventID != other.EventID || ask.SessionID != session || !ask.Request.Wait.Timed {
		t.Errorf("desk got %+v, phone %+v", ask, other)
	}
	ms, release := desk.Claim(ask)
	defer release()
	if ms < 1 || ms > 60_000 {
		t.Errorf("remaining %d ms of 60 s", ms)
	}
	ask.Answer(`[{"id":"store","selected":["Postgres"]}]`)
	says(t, desk, session, "in time: store: Postgres")
	<-other.Gone
	var settled struct{ EventID, Kind, By, ByName string }
	if err := json.Unmarshal(phone.Notice("remote/settled").Params, &settled); err != nil {
		t.Fatal(err)
	}
	if settled.EventID != ask.EventID || settled.Kind != "result" || settled.By != desk.ID || settled.ByName != "desk" {
		t.Errorf("the other client was told %+v", settled)
	}
}

func TestAskAnsweredLate(t *testing.T) {
	h := hosttest.Start(t, hosttest.Options{Script: script(1)})
	desk := person(h, "desk")
	session := begin(desk)
	ask := desk.Next() // no claim: the host's own deadline ends it
	says(t, desk, session, "carrying on")
	<-ask.Gone
	var out struct {
		Accepted  bool
		MessageID string
	}
	desk.Call("userQuestions/answer", obj{"sessionId": session, "callId": ask.Request.Wait.CallID, "submissionId": "press",
		"answer": obj{"answers": []obj{{"id": "store", "selected": []string{"SQLite"}}}}}, &out)
	if !out.Accepted || out.MessageID != "press" {
		t.Errorf("answer = %+v", out)
	}
	events := says(t, desk, session, "late: store: SQLite")
	for _, e := range events {
		if e.Type == "user/message" && strings.Contains(string(e.Data), "user-question-reply") {
			if !strings.Contains(string(e.Data), `"by":"desk"`) {
				t.Errorf("the reply does not say who: %s", e.Data)
			}
			return
		}
	}
	t.Error("no reply was admitted")
}

// A stopping host records nothing for an open question; the next one finds it,
// and the answer still arrives.
func TestRestartWithAnOpenAsk(t *testing.T) {
	h := hosttest.Start(t, hosttest.Options{Script: script(600)})
	desk := person(h, "desk")
	session := begin(desk)
	ask := desk.Next()
	_, release := desk.Claim(ask)
	defer release()
	before := desk.Until(session, func(e hosttest.Event) bool { return e.Type == "tool/call" })
	h.Restart()
	select {
	case <-ask.Gone:
	default:
		t.Error("the old connection still has its question")
	}
	desk = person(h, "desk")
	events := desk.Until(session, func(e hosttest.Event) bool { return e.Type == "turn/end" })
	var types []string
	for _, e := range events[len(before):] {
		types = append(types, e.Type)
	}
	if got := strings.Join(types, " "); got != "tool/result step/end turn/end" {
		t.Errorf("after the restart the log goes on with %s, want only its repair", got)
	}
	if data := string(events[len(before)].Data); !strings.Contains(data, "TOOL_OUTCOME_UNKNOWN") {
		t.Errorf("the result is %s, want an unknown outcome", data)
	}
	desk.Call("userQuestions/answer", obj{"sessionId": session, "callId": ask.Request.Wait.CallID, "submissionId": "press",
		"answer": obj{"answers": []obj{{"id": "store", "selected": []string{"SQLite"}}}}}, nil)
	says(t, desk, session, "late: store: SQLite")
}

// Without a model a reply is taken and kept, the row says why it waits, and a
// host with a model goes on with it.
func TestReplyWaitsForAModel(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "script.json")
	if err := os.WriteFile(path, []byte(script(1)), 0o600); err != nil {
		t.Fatal(err)
	}
	var data string
	with := hosttest.Start(t, hosttest.Options{Script: script(1), Change: func(c *config.Config) { data = c.Data }})
	desk := person(with, "desk")
	session := begin(desk)
	ask := desk.Next()
	desk.Until(session, func(e hosttest.Event) bool { return e.Type == "turn/end" })
	with.Stop()

	without := hosttest.Start(t, hosttest.Options{Change: func(c *config.Config) { c.Data = data }})
	desk = person(without, "desk")
	var out struct {
		Accepted bool
		State    string
	}
	desk.Call("userQuestions/answer", obj{"sessionId": session, "callId": ask.Request.Wait.CallID, "submissionId": "press",
		"answer": obj{"answers": []obj{{"id": "store", "selected": []string{"SQLite"}}}}}, &out)
	if !out.Accepted || out.State != "queued" {
		t.Errorf("answer without a model = %+v, want it queued", out)
	}
	desk.Follow("host/follow", obj{}, func(raw json.RawMessage) bool {
		return strings.Contains(string(raw), `"note":"blocked: no model is configured"`)
	})
	without.Stop()

	again := hosttest.Start(t, hosttest.Options{Script: script(1), Change: func(c *config.Config) { c.Data = data }})
	says(t, person(again, "desk"), session, "late: store: SQLite")
}

func TestOneHostForADirectory(t *testing.T) {
	h := hosttest.Start(t, hosttest.Options{})
	cfg := h.Config()
	a, err := app.Start(context.Background(), cfg, slog.New(slog.DiscardHandler))
	var locked *logstore.LockedError
	if !errors.As(err, &locked) || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Errorf("a second host on the directory: %v, %v; want who has it", a, err)
	}
}

// A start that fails halfway leaves nothing behind.
func TestPortInUse(t *testing.T) {
	h := hosttest.Start(t, hosttest.Options{})
	cfg := h.Config()
	cfg.Listen = h.App().Address().String()
	cfg.Data = filepath.Join(t.TempDir(), "d")
	if _, err := app.Start(context.Background(), cfg, slog.New(slog.DiscardHandler)); !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), cfg.Listen) {
		t.Errorf("Start = %v, want the address in use", err)
	}
	cfg.Listen = "127.0.0.1:0"
	a, err := app.Start(context.Background(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatalf("the directory is not free after a failed start: %v", err)
	}
	if err := a.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestRevokedTokenIsDropped(t *testing.T) {
	h := hosttest.Start(t, hosttest.Options{})
	text, id := h.Token("phone", "read")
	phone, desk := h.ConnectWith(text), person(h, "desk")
	desk.Call("token/revoke", obj{"id": id}, nil)
	<-phone.Done()
	var closed *jsonrpc.CloseError
	if err := phone.Err(); !errors.As(err, &closed) || closed.Code != 4401 {
		t.Errorf("the connection ended with %v, want 4401", err)
	}
	if status, body := h.Post(text, "ping", obj{}); status != http.StatusUnauthorized {
		t.Errorf("a call with the revoked token = %d %s", status, body)
	}
	desk.Call("ping", obj{}, nil)
}

// The socket of the data directory is for this user alone and answers nothing.
func TestLocalSocket(t *testing.T) {
	h := hosttest.Start(t, hosttest.Options{})
	info, err := os.Stat(app.SocketPath(h.Config().Data))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("socket mode %v, %v; want 0600", info.Mode(), err)
	}
	if dir, err := os.Stat(h.Config().Data); err != nil || dir.Mode().Perm() != 0o700 {
		t.Errorf("directory mode %v, %v; want 0700", dir.Mode(), err)
	}
	local := h.Local()
	err = local.Try("userQuestions/answer", obj{"sessionId": "s", "callId": "c", "submissionId": "m", "answer": obj{}}, nil)
	if err == nil || !strings.Contains(err.Error(), "answer") {
		t.Errorf("an answer over the socket: %v, want it refused for its scope", err)
	}
	local.Call("session/open", obj{"agent": obj{"kind": "external", "name": "bot"}}, nil)
}

func TestPostServesOneCall(t *testing.T) {
	h := hosttest.Start(t, hosttest.Options{})
	token, _ := h.Token("bot", "ask")
	status, body := h.Post(token, "session/open", obj{"agent": obj{"kind": "external", "name": "bot"}, "key": "k"})
	if status != 200 || !strings.Contains(string(body), "sessionId") {
		t.Errorf("session/open by POST = %d %s", status, body)
	}
	reader, _ := h.Token("eye", "read")
	if _, body := h.Post(reader, "host/follow", obj{}); !strings.Contains(string(body), "STREAM_NEEDS_SOCKET") {
		t.Errorf("a stream by POST = %s", body)
	}
	if _, body := h.Post(reader, "session/create", obj{}); !strings.Contains(string(body), "MISSING_SCOPE") {
		t.Errorf("a call beyond the scope = %s", body)
	}
}

// What `make run` shows without a key: the agent asks, carries on with a command
// when nobody is there, and takes the late answer.
func TestDemo(t *testing.T) {
	h := hosttest.Start(t, hosttest.Options{Change: func(c *config.Config) { c.Demo = true }})
	desk := person(h, "desk")
	ask := desk.Next() // of the session that an empty demonstration begins with
	session := ask.SessionID
	_, release := desk.Claim(ask)
	ask.Fail("ASK_TIMED_OUT") // the card's countdown ended
	release()
	events := says(t, desk, session, "I stop here until it comes")
	ran := false
	for _, e := range events {
		ran = ran || e.Type == "tool/call" && strings.Contains(string(e.Data), `"name":"bash"`)
	}
	if !ran {
		t.Error("the agent did nothing meanwhile")
	}
	desk.Call("userQuestions/answer", obj{"sessionId": session, "callId": ask.Request.Wait.CallID, "submissionId": "press",
		"answer": obj{"answers": []obj{{"id": "store", "selected": []string{"Postgres"}}, {"id": "deploy", "selected": []string{}}}}}, nil)
	says(t, desk, session, "Your answer arrived")
}

// A plan goes out as a plan review, and only the label approves it.
func TestPlanReview(t *testing.T) {
	h := hosttest.Start(t, hosttest.Options{Script: `{"name":"test","rules":[
	{"when":{"tool":"submit_plan","contains":"\"approved\":true"},"do":[{"text":"I carry it out"}]},
	{"when":{"tool":"submit_plan","failed":true},"do":[{"text":"nobody approved"}]},
	{"when":{"tool":"submit_plan"},"do":[{"call":"submit_plan","arguments":{"plan":"# Better"}}]},
	{"when":{"last":"user"},"do":[{"call":"submit_plan","arguments":{"plan":"# Steps"}}]}
	]}`})
	desk := person(h, "desk")
	session := begin(desk)
	for _, want := range []string{`# Steps`, `# Better`} {
		ask := desk.Next()
		if text := string(ask.Request.Questions); !strings.Contains(text, want) || !strings.Contains(text, `"intent":{"kind":"plan-review","approve":"Approve"}`) {
			t.Errorf("the plan went out as %s", text)
		}
		if want == `# Steps` {
			ask.Answer(`[{"id":"plan","selected":[],"custom":"better"}]`)
		} else {
			ask.Answer(`[{"id":"plan","selected":["Approve"]}]`)
		}
	}
	says(t, desk, session, "I carry it out")
	again := begin(desk)
	desk.Next().Fail("ASK_CANCELLED")
	says(t, desk, again, "nobody approved")
}
