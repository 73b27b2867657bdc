package httpapi_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"meanwhile/host/httpapi"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// The store's own, which it lets go half a minute after it is closed.
		goleak.IgnoreTopFunction("github.com/syndtr/goleveldb/leveldb.(*DB).mpoolDrain"),
		goleak.Cleanup(func(code int) {
			http.DefaultClient.CloseIdleConnections()
			os.Exit(code)
		}))
}

func TestAskAndAnswerInTime(t *testing.T) {
	w := newWorld(t)
	asked := w.agent.begin("POST", w.asks(), store(nil))
	card := w.desk.Next()
	got := w.person.do("POST", w.asks(card.Request.Wait.CallID, "answer"), answers("Postgres, hosted"))
	if got.status != 200 || got.State != "settled" {
		t.Fatalf("answer: %d %s", got.status, got.raw)
	}
	<-card.Gone // the other client learns of it
	st := <-asked
	if st.Status != "answered" || st.Answers[0].Selected[0] != "Postgres, hosted" {
		t.Errorf("ask: %s", st.raw)
	}
	if again := w.person.do("POST", w.asks(st.CallID, "answer"), answers("SQLite")); again.status != 409 || again.Code != "NOT_OPEN" {
		t.Errorf("a second answer: %d %s", again.status, again.raw)
	}
	if s := w.agent.do("GET", w.asks(st.CallID), nil); s.Status != "answered" || s.Answers[0].Selected[0] != "Postgres, hosted" {
		t.Errorf("await of a settled ask: %s", s.raw)
	}
}

func TestHoldAndLateReply(t *testing.T) {
	w := newWorld(t)
	st := w.agent.do("POST", w.asks(), store(args{"timeout": 1, "holdMs": 10}))
	if st.Status != "pending" || st.RemainingMs == nil || *st.RemainingMs < 1 || st.Shown == nil || *st.Shown {
		t.Fatalf("ask: %s", st.raw)
	}
	w.desk.Next()
	st = w.agent.do("GET", w.asks(st.CallID)+"?holdMs=20000", nil)
	if st.Status != "pending" || *st.RemainingMs != 0 {
		t.Fatalf("after the window: %s", st.raw)
	}
	waiting := w.agent.begin("GET", w.asks(st.CallID)+"?holdMs=20000", nil)
	late := w.person.do("POST", w.asks(st.CallID, "answer"), answers("SQLite"), "Idempotency-Key", `"press"`)
	if late.State != "queued" || late.MessageID != "press" {
		t.Fatalf("late answer: %d %s", late.status, late.raw)
	}
	if s := <-waiting; s.Status != "answered" || s.MessageID != "press" {
		t.Errorf("await: %s", s.raw)
	}
	if s := w.person.do("POST", w.asks(st.CallID, "answer"), answers("SQLite"), "Idempotency-Key", "press"); s.status != 200 || s.MessageID != "press" {
		t.Errorf("the same submission: %d %s", s.status, s.raw)
	}
	if s := w.person.do("POST", w.asks(st.CallID, "answer"), answers("SQLite")); s.status != 409 || s.Code != "REPLY_QUEUED" {
		t.Errorf("another submission: %d %s", s.status, s.raw)
	}
	if s := w.agent.do("POST", "sessions/"+w.session+"/inbox/admit", args{"messageIds": []string{"press"}}); len(s.Admitted) != 1 {
		t.Errorf("admit: %s", s.raw)
	}
	if s := w.agent.do("POST", "sessions/"+w.session+"/inbox/claim", nil); s.status != 200 || len(s.Messages) != 0 {
		t.Errorf("claim after admit: %s", s.raw)
	}
}

// A reply comes again, under the same id, until it is acknowledged: by its id,
// or by the same holder calling again.
func TestClaim(t *testing.T) {
	w := newWorld(t)
	st := w.agent.do("POST", w.asks(), store(args{"timeout": 1}))
	w.person.do("POST", w.asks(st.CallID, "answer"), answers("SQLite"), "Idempotency-Key", "press")
	claim := func(holder string) reply {
		return w.agent.do("POST", "sessions/"+w.session+"/inbox/claim", args{"holder": holder})
	}
	if s := claim("a"); len(s.Messages) != 1 || s.Messages[0].ID != "press" {
		t.Fatalf("claim: %s", s.raw)
	}
	if s := claim("b"); len(s.Messages) != 0 {
		t.Errorf("leased to two: %s", s.raw)
	}
	if s := claim("a"); len(s.Messages) != 0 {
		t.Errorf("the same holder called again, and got it again: %s", s.raw)
	}
	if s := w.agent.do("GET", w.asks(st.CallID), nil); s.Status != "answered" || s.MessageID != "" {
		t.Errorf("await after it was read: %s", s.raw)
	}
}

func TestWithdraw(t *testing.T) {
	w := newWorld(t)
	st := w.agent.do("POST", w.asks(), store(args{"holdMs": 10}))
	card := w.desk.Next()
	if s := w.agent.do("DELETE", w.asks(st.CallID), nil); s.Withdrawn == nil || !*s.Withdrawn {
		t.Fatalf("withdraw: %s", s.raw)
	}
	<-card.Gone
	if s := w.agent.do("GET", w.asks(st.CallID), nil); s.status != http.StatusGone || s.Code != "ASK_WITHDRAWN" {
		t.Errorf("await: %d %s", s.status, s.raw)
	}
	if s := w.person.do("POST", w.asks(st.CallID, "answer"), answers("SQLite")); s.status != 409 {
		t.Errorf("answer: %d %s", s.status, s.raw)
	}
}

func TestIdempotencyKey(t *testing.T) {
	w := newWorld(t)
	a := w.agent.do("POST", w.asks(), store(args{"holdMs": 10}), "Idempotency-Key", "k1")
	b := w.agent.do("POST", w.asks(), store(args{"holdMs": 10}), "Idempotency-Key", `"k1"`)
	if a.CallID == "" || a.CallID != b.CallID {
		t.Errorf("one key, two asks: %s, %s", a.raw, b.raw)
	}
	other := store(args{"holdMs": 10})
	other["questions"].([]args)[0]["question"] = "Which shop?"
	if s := w.agent.do("POST", w.asks(), other, "Idempotency-Key", "k1"); s.status != 409 || s.Code != "REQUEST_CONFLICT" {
		t.Errorf("other questions: %d %s", s.status, s.raw)
	}
	if s := w.agent.do("POST", w.asks(), store(args{"requestId": "k2"}), "Idempotency-Key", "k1"); s.status != 422 || s.Field != "requestId" {
		t.Errorf("two keys: %d %s", s.status, s.raw)
	}
}

// A cut request ends the request alone.
func TestCutRequest(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		_, err := w.agent.try(ctx, "POST", w.asks(), store(args{"timeout": 600}), "Idempotency-Key", "k")
		ended <- err
	}()
	card := w.desk.Next()
	cancel()
	if err := <-ended; err == nil {
		t.Error("a cut request returned")
	}
	select {
	case <-card.Gone:
		t.Fatal("the question went with the request")
	default:
	}
	again := w.agent.begin("POST", w.asks(), store(args{"timeout": 600}), "Idempotency-Key", "k")
	card.Answer(`[{"id":"store","selected":["SQLite"]}]`)
	if s := <-again; s.Status != "answered" && s.Status != "pending" || s.CallID != card.Request.Wait.CallID {
		t.Errorf("sent again: %s", s.raw)
	}
}

func TestRefusals(t *testing.T) {
	w := newWorld(t)
	other, _ := w.h.Token("other agent", "ask")
	open := w.agent.do("POST", w.asks(), store(args{"holdMs": 10})).CallID
	for _, tc := range []struct {
		name   string
		by     client
		method string
		path   string
		body   any
		header []string
		status int
		code   string
		field  string
	}{
		{name: "no token", by: client{t, w.h, ""}, method: "POST", path: w.asks(), body: store(nil), status: 403},
		{name: "no token, reading", by: client{t, w.h, ""}, method: "GET", path: w.asks(open), status: 401, code: "BAD_TOKEN"},
		{name: "a wrong token", by: client{t, w.h, "mwt_x"}, method: "GET", path: w.asks(open), status: 401, code: "BAD_TOKEN"},
		{name: "another site", by: w.agent, method: "POST", path: w.asks(), body: store(nil), header: []string{"Origin", "https://evil.example"}, status: 403, code: "FORBIDDEN"},
		{name: "the asker answers", by: w.agent, method: "POST", path: w.asks(open, "answer"), body: answers("SQLite"), status: 403, code: "MISSING_SCOPE", field: "answer"},
		{name: "the person asks", by: w.person, method: "POST", path: w.asks(), body: store(nil), status: 403, code: "MISSING_SCOPE", field: "ask"},
		{name: "an agent lists", by: w.agent, method: "GET", path: "sessions", status: 403, code: "MISSING_SCOPE", field: "read"},
		{name: "an agent follows", by: w.agent, method: "GET", path: "sessions/" + w.session + "/events", status: 403, code: "MISSING_SCOPE", field: "read"},
		{name: "another agent's session", by: client{t, w.h, other}, method: "POST", path: w.asks(), body: store(nil), status: 404, code: "NO_SESSION", field: "sessionId"},
		{name: "no such ask", by: w.agent, method: "GET", path: w.asks("nothing"), status: 404, code: "UNKNOWN_CALL", field: "callId"},
		{name: "no such path", by: w.agent, method: "GET", path: "nothing", status: 404, code: "NO_PATH"},
		{name: "no such method", by: w.agent, method: "DELETE", path: "sessions", status: 405, code: "BAD_METHOD"},
		{name: "not JSON", by: w.agent, method: "POST", path: w.asks(), body: "{", status: 400, code: "BAD_BODY"},
		{name: "a name twice", by: w.agent, method: "POST", path: w.asks(), body: `{"questions":[],"questions":[]}`, status: 400, code: "BAD_BODY"},
		{name: "a list", by: w.agent, method: "POST", path: w.asks(), body: "[]", status: 422, code: "BAD_BODY"},
		{name: "a form", by: w.agent, method: "POST", path: w.asks(), body: "{}", header: []string{"Content-Type", "text/plain"}, status: 415, code: "BAD_TYPE"},
		{name: "ten megabytes", by: w.agent, method: "POST", path: w.asks(), body: `"` + strings.Repeat("x", 10<<20) + `"`, status: 413, code: "TOO_LARGE"},
		{name: "an unknown member", by: w.agent, method: "POST", path: w.asks(), body: store(args{"tiemout": 5}), status: 422, code: "BAD_BODY", field: "tiemout"},
		{name: "no questions", by: w.agent, method: "POST", path: w.asks(), body: args{}, status: 422, code: "BAD_BODY", field: "questions"},
		{name: "empty questions", by: w.agent, method: "POST", path: w.asks(), body: args{"questions": []args{}}, status: 422, code: "EMPTY_QUESTIONS"},
		{name: "timeout 0", by: w.agent, method: "POST", path: w.asks(), body: store(args{"timeout": 0}), status: 422, code: "BAD_TIMEOUT", field: "timeout"},
		{name: "timeout as text", by: w.agent, method: "POST", path: w.asks(), body: store(args{"timeout": "120"}), status: 422, code: "BAD_TIMEOUT", field: "timeout"},
		{name: "hold too long", by: w.agent, method: "GET", path: w.asks(open) + "?holdMs=600001", status: 422, code: "BAD_BODY"},
		{name: "hold as a word", by: w.agent, method: "GET", path: w.asks(open) + "?holdMs=long", status: 422, code: "BAD_BODY", field: "holdMs"},
		{name: "a label not offered", by: w.person, method: "POST", path: w.asks(open, "answer"), body: answers("MySQL"), status: 422, code: "BAD_ANSWER"},
		{name: "whitespace", by: w.person, method: "POST", path: w.asks(open, "answer"), body: `{"answers":[{"id":"store","selected":[],"custom":" "}]}`, status: 422, code: "BAD_ANSWER"},
		{name: "more than answers", by: w.person, method: "POST", path: w.asks(open, "answer"), body: `{"answers":[],"by":"me"}`, status: 422, code: "BAD_BODY", field: "answers"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.by.t = t
			got := tc.by.do(tc.method, tc.path, tc.body, tc.header...)
			if got.status != tc.status || tc.code != "" && got.Code != tc.code || tc.field != "" && got.Field != tc.field {
				t.Errorf("%d %s, want %d %s %s", got.status, got.raw, tc.status, tc.code, tc.field)
			}
			if got.Detail == "" {
				t.Error("no word on what to do")
			}
		})
	}
	// After all refusals the good answer is taken.
	if s := w.person.do("POST", w.asks(open, "answer"), answers("SQLite")); s.State != "settled" && s.State != "queued" {
		t.Errorf("the good answer: %d %s", s.status, s.raw)
	}
}

func TestEvents(t *testing.T) {
	w := newWorld(t)
	st := w.agent.do("POST", w.asks(), store(args{"holdMs": 10}))
	follow := func(last string) (io.Closer, io.Reader) {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		t.Cleanup(cancel)
		r, err := http.NewRequestWithContext(ctx, "GET", w.h.URL("/api/v1/sessions/"+w.session+"/events"), nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+w.person.token)
		if last != "" {
			r.Header.Set("Last-Event-ID", last)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("status %d, %q", resp.StatusCode, resp.Header.Get("Content-Type"))
		}
		return resp.Body, resp.Body
	}
	seen := ""
	closer, body := follow("")
	frames(t, body, func(f frame) bool {
		if f.event == "snapshot" && f.id != "" {
			t.Error("a snapshot has an id: who came back after it would miss its events")
		}
		seen = f.id
		return strings.Contains(f.data, `"tool/call"`)
	})
	closer.Close()
	w.person.do("POST", w.asks(st.CallID, "answer"), answers("SQLite"))
	closer, body = follow(seen)
	defer closer.Close()
	frames(t, body, func(f frame) bool {
		if strings.Contains(f.data, `"type":"tool/call"`) {
			t.Errorf("an event came again: %s", f.data)
		}
		return strings.Contains(f.data, `"type":"tool/result"`)
	})
	if s := w.person.do("GET", "sessions/"+w.session+"/events", nil, "Last-Event-ID", "99999"); s.status != http.StatusGone || s.Code != "RESYNC" {
		t.Errorf("past the end: %d %s", s.status, s.raw)
	}
	if s := w.person.do("GET", "sessions", nil); len(s.Sessions) != 1 || s.Sessions[0].ID != w.session {
		t.Errorf("list: %s", s.raw)
	}
}

func TestDocuments(t *testing.T) {
	w := newWorld(t)
	doc := readDocument(t)
	paths := []string{"/api/v1/openapi.json"}
	for name := range doc.Components.Schemas {
		paths = append(paths, "/api/v1/schemas/"+name+".json")
	}
	for _, path := range paths {
		resp, err := http.Get(w.h.URL(path))
		if err != nil {
			t.Fatal(err)
		}
		var body map[string]any
		err = json.NewDecoder(resp.Body).Decode(&body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != 200 {
			t.Errorf("%s: %d, %v", path, resp.StatusCode, err)
		}
		if id, ok := body["$id"]; ok && id != path {
			t.Errorf("%s calls itself %v", path, id)
		}
	}
	// What the document lists is served, and what is served is listed.
	listed := 0
	for path, item := range doc.Paths {
		for method := range item {
			listed++
			path := strings.NewReplacer("{sessionId}", "none", "{callId}", "none").Replace(strings.TrimPrefix(path, httpapi.Root))
			s := w.agent.do(strings.ToUpper(method), path, nil)
			if s.Code == "NO_PATH" || s.Code == "BAD_METHOD" {
				t.Errorf("%s %s is listed and not served", method, path)
			}
		}
	}
	if listed != httpapi.RouteCount() {
		t.Errorf("%d operations listed, %d served", listed, httpapi.RouteCount())
	}
}

// Answers around the end of the window, each by a request of its own: every one
// is taken once, as a result or as a late reply, and the person is told which.
func TestAnswerAtTheDeadline(t *testing.T) {
	w := newWorld(t)
	const asks = 16
	var waits sync.WaitGroup
	for n := range asks {
		waits.Go(func() {
			key := strconv.Itoa(n)
			body := store(args{"timeout": 1, "holdMs": 1})
			st := w.agent.do("POST", w.asks(), body, "Idempotency-Key", key)
			if st.RemainingMs == nil {
				t.Errorf("ask: %s", st.raw)
				return
			}
			// Half of the agents hold across the deadline.
			var held <-chan reply
			if n%2 == 0 {
				held = w.agent.begin("GET", w.asks(st.CallID)+"?holdMs=5000", nil)
			}
			timer := time.NewTimer(time.Duration(*st.RemainingMs+int64(n)-asks/2) * time.Millisecond)
			<-timer.C
			said := w.person.do("POST", w.asks(st.CallID, "answer"), answers("SQLite"), "Idempotency-Key", "press-"+key)
			if said.status != 200 || said.State != "settled" && said.State != "queued" {
				t.Errorf("answer: %d %s", said.status, said.raw)
			}
			if held != nil {
				<-held
			}
			got := w.agent.do("GET", w.asks(st.CallID)+"?holdMs=5000", nil)
			if got.Status != "answered" || got.Answers[0].Selected[0] != "SQLite" {
				t.Errorf("await: %s", got.raw)
			}
			again := w.person.do("POST", w.asks(st.CallID, "answer"), answers("Postgres, hosted"))
			if again.status != 409 {
				t.Errorf("a second answer: %d %s", again.status, again.raw)
			}
		})
	}
	waits.Wait()
}
