package security

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"meanwhile/host/app"
	"meanwhile/host/config"
	"meanwhile/host/gateway/wsconn"
	"meanwhile/host/jsonrpc"
)

// The secrets that a run handles, each to be found nowhere but where it belongs.
const (
	canaryKey    = "canary-api-key-71c2"
	canaryAnswer = "canary-answer-5e0b"
)

// paper is a log that is written by many.
type paper struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (p *paper) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *paper) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// wary is a host whose log and error responses are kept.
type wary struct {
	t     *testing.T
	app   *app.App
	log   *paper
	trail paper // what the host said of errors: bodies, headers, close reasons
}

func newWary(t *testing.T, model string) *wary {
	t.Helper()
	data, err := os.MkdirTemp("", "mw")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(data) })
	cfg, err := config.Load(config.Sources{
		Flags: map[string]string{"listen": "127.0.0.1:0", "data": data, "ask.mode": "timed", "model.base_url": model, "model.provider": "openai", "model.name": "m"},
		Env:   func(name string) (string, bool) { return canaryKey, name == "OPENAI_API_KEY" },
	})
	if err != nil {
		t.Fatal(err)
	}
	w := &wary{t: t, log: &paper{}}
	w.app, err = app.Start(context.Background(), cfg, slog.New(slog.NewJSONHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if w.app != nil {
			w.close()
		}
	})
	return w
}

func (w *wary) close() {
	if err := w.app.Close(context.Background()); err != nil {
		w.t.Error(err)
	}
	w.app = nil
}

// send makes a request; what comes back as an error goes into the trail.
func (w *wary) send(method, path, body string, header ...string) (int, string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, "http://"+w.app.Address().String()+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	if resp.StatusCode >= 400 || bytes.Contains(out, []byte(`"error"`)) {
		resp.Header.Write(&w.trail)
		w.trail.Write(append(out, '\n'))
	}
	return resp.StatusCode, string(out)
}

// Every error path is taken with secrets in hand; then they are looked for.
func TestSecretsStayWhereTheyBelong(t *testing.T) {
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w, `{"error":{"message":"bad key `+r.Header.Get("Authorization")+`"}}`) // as some do
	}))
	defer model.Close()
	w := newWary(t, model.URL+"/v1")
	origin := "http://" + w.app.Address().String()
	_, code, _ := strings.Cut(w.app.LoginURL(), "#code=")
	_, unused, _ := strings.Cut(w.app.LoginURL(), "#code=")

	// Logging in: the right code, spent, malformed, in the wrong place.
	_, in := w.send("POST", "/auth/login", `{"code":"`+code+`"}`, "Origin", origin)
	var login struct{ Token string }
	if err := json.Unmarshal([]byte(in), &login); err != nil || login.Token == "" {
		t.Fatalf("login: %s", in)
	}
	w.send("POST", "/auth/login", `{"code":"`+code+`"}`, "Origin", origin)
	w.send("POST", "/auth/login", `{"code":"`+unused+`","label":"\u0000"}`, "Origin", origin)
	w.send("POST", "/auth/login", `{"code":["`+unused+`"]}`, "Origin", origin)
	w.send("POST", "/auth/login", `{"code":"`+unused+`"}`, "Origin", "https://evil.example")
	w.send("GET", "/auth/login", "", "Origin", origin)

	// The token where it may not be, and half of it.
	bearer := "Bearer " + login.Token
	cut := "Bearer " + login.Token[:len(login.Token)-1]
	for _, path := range []string{"/rpc", "/metrics", "/mcp", "/api/v1/sessions", "/auth/logout", "/readyz", "/nothing"} {
		for _, method := range []string{"GET", "POST", "PUT"} {
			w.send(method, path, "{}", "Authorization", cut)
			w.send(method, path, "{}", "Authorization", bearer, "Origin", "https://evil.example")
			w.send(method, path+"?token="+login.Token, "{}", "Origin", origin)
		}
	}
	w.send("POST", "/mcp", "{}", "Authorization", bearer) // has no scope ask

	// Answers: to nobody, malformed, too long, of the wrong shape, cut in the middle.
	rpc := func(method, params string) (int, string) {
		return w.send("POST", "/rpc", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`, "Authorization", bearer)
	}
	_, made := rpc("session/create", `{"text":"go"}`)
	var created struct{ Result struct{ SessionID string } }
	if err := json.Unmarshal([]byte(made), &created); err != nil || created.Result.SessionID == "" {
		t.Fatalf("create: %s", made)
	}
	id := created.Result.SessionID
	answer := `{"answers":[{"id":"q","selected":[],"custom":"` + canaryAnswer + `"}]}`
	for _, params := range []string{
		`{"sessionId":"` + id + `","callId":"none","answer":` + answer + `,"submissionId":"s"}`,
		`{"sessionId":"none","callId":"none","answer":` + answer + `,"submissionId":"s"}`,
		`{"sessionId":"` + id + `","callId":"none","answer":` + answer + `,"submissionId":"` + strings.Repeat("s", 4000) + `"}`,
		`{"sessionId":"` + id + `","answer":"` + canaryAnswer + `"}`,
		`{"sessionId":"` + id + `","callId":"c","answer":` + answer + `,"more":"` + canaryAnswer + `"}`,
		`{"sessionId":{"x":"` + canaryAnswer + `"}}`,
		`["` + canaryAnswer + `"]`,
		`{"answer":` + answer,
		`{"answer":"` + canaryAnswer + `","answer":"` + canaryAnswer + `"}`,
		"{\"answer\":\"" + canaryAnswer + "\xff\"}",
	} {
		rpc("userQuestions/answer", params)
		rpc("remote/settle", params)
		rpc("no/such", params)
		w.send("POST", "/api/v1/sessions/"+id+"/asks/none/answer", params, "Authorization", bearer)
		w.send("POST", "/rpc", params, "Authorization", bearer)
	}
	w.failedTurn(t, login.Token, id)
	w.asked(t, login.Token)
	w.socket(t, login.Token)
	w.send("POST", "/auth/logout", "", "Authorization", bearer)
	w.send("POST", "/auth/logout", "", "Authorization", bearer)
	w.close()

	if log := w.log.String(); !strings.Contains(log, "request refused") || !strings.Contains(log, `"login"`) {
		t.Errorf("the log says too little to prove anything:\n%s", log)
	}
	if !strings.Contains(w.trail.String(), `"kind":"error"`) {
		t.Error("the model's refusal reached no session")
	}
	if w.trail.text.Len() < 10_000 {
		t.Errorf("only %d bytes of errors came back", w.trail.text.Len())
	}
	secret := login.Token[strings.LastIndex(login.Token, "_")+1:]
	for name, canary := range map[string]string{"token": secret, "code": code, "unused code": unused, "API key": canaryKey, "answer": canaryAnswer} {
		for where, text := range map[string]string{"log": w.log.String(), "errors": w.trail.String()} {
			if i := strings.Index(text, canary); i >= 0 {
				t.Errorf("the %s is in the %s: …%s…", name, where, text[max(0, i-200):min(len(text), i+100)])
			}
		}
	}
}

// dial connects with a token.
func (w *wary) dial(t *testing.T, token string, h jsonrpc.Handler, o jsonrpc.Options) *jsonrpc.Conn {
	t.Helper()
	link, err := wsconn.Dial(t.Context(), "ws://"+w.app.Address().String()+"/rpc", wsconn.DialOptions{Header: http.Header{"Authorization": {"Bearer " + token}}})
	if err != nil {
		t.Fatal(err)
	}
	conn := jsonrpc.NewConn(link, h, o)
	if err := conn.Call(t.Context(), "initialize", map[string]any{"protocol": 1, "client": map[string]any{"name": "x", "version": "0"}}, nil); err != nil {
		t.Fatal(err)
	}
	return conn
}

// failedTurn keeps what a session says of the model that refused its key, and
// said it aloud.
func (w *wary) failedTurn(t *testing.T, token, sessionID string) {
	t.Helper()
	conn := w.dial(t, token, nil, jsonrpc.Options{})
	defer conn.Wait()
	defer conn.Close(jsonrpc.CloseNormal, "")
	ended := errors.New("ended")
	err := conn.Stream(t.Context(), "session/follow", map[string]any{"sessionId": sessionID}, func(item json.RawMessage) error {
		w.trail.Write(item)
		if bytes.Contains(item, []byte(`"turn/end"`)) {
			return ended
		}
		return nil
	})
	if !errors.Is(err, ended) {
		t.Fatal(err)
	}
}

// asked has an outside agent ask, and answers badly, well and once more.
func (w *wary) asked(t *testing.T, answerer string) {
	t.Helper()
	refusals := make(chan json.RawMessage, 8)
	answers := []string{
		`{"answers":[{"id":"other","selected":[],"custom":"` + canaryAnswer + `"}]}`,
		`{"answers":[{"id":"q","selected":["` + canaryAnswer + `"]}]}`,
		`{"answers":"` + canaryAnswer + `"}`,
		`{"answers":[{"id":"q","selected":[],"custom":"` + canaryAnswer + `"}]}`,
	}
	next := 0
	conn := w.dial(t, answerer, jsonrpc.HandlerFunc(func(_ context.Context, q *jsonrpc.Request) (any, error) {
		if q.Method != "user-questions/request" {
			return map[string]int{"time": 0}, nil
		}
		refusals <- q.Params
		next++
		return json.RawMessage(answers[next-1]), nil
	}), jsonrpc.Options{MaxCalls: 1})
	defer conn.Wait()
	defer conn.Close(jsonrpc.CloseNormal, "")
	var token struct{ Token string }
	if err := conn.Call(t.Context(), "token/create", map[string]any{"label": "bot", "scopes": []string{"ask"}}, &token); err != nil {
		t.Fatal(err)
	}
	bot := func(method, params string) string {
		_, body := w.send("POST", "/rpc", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`, "Authorization", "Bearer "+token.Token)
		return body
	}
	var opened struct {
		Result struct{ SessionID, Status string }
	}
	if err := json.Unmarshal([]byte(bot("session/open", `{"agent":{"kind":"external","name":"bot"}}`)), &opened); err != nil {
		t.Fatal(err)
	}
	body := bot("userQuestions/ask", `{"sessionId":"`+opened.Result.SessionID+`","timeout":60,"holdMs":20000,"questions":[{"id":"q","question":"Which?","options":[{"label":"A"}]}]}`)
	if err := json.Unmarshal([]byte(body), &opened); err != nil || opened.Result.Status != "answered" {
		t.Fatalf("the ask came back as %s", body)
	}
	for range next {
		if p := <-refusals; bytes.Contains(p, []byte("refused")) {
			w.trail.Write(p) // what the host says of an answer that it refused
		}
	}
	if next != len(answers) {
		t.Errorf("%d answers were wanted, want %d: three refused, one taken", next, len(answers))
	}
}

// socket says wrong things over a connection.
func (w *wary) socket(t *testing.T, token string) {
	t.Helper()
	for _, first := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocol":1,"client":{"name":"x","version":"0"},"token":"` + token + `x"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocol":9,"client":{"name":"x","version":"0"},"token":"` + token + `"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"Token":"` + token + `","protocol":1,"client":{"name":"x","version":"0"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"token":"` + token + `","token":"` + token + `"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"answer","params":"` + canaryAnswer + `"`,
		`"` + canaryAnswer + `"`,
	} {
		link, err := wsconn.Dial(t.Context(), "ws://"+w.app.Address().String()+"/rpc", wsconn.DialOptions{Header: http.Header{"Origin": {"http://" + w.app.Address().String()}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := link.Write(t.Context(), []byte(first)); err != nil {
			t.Fatal(err)
		}
		for {
			frame, err := link.Read(t.Context())
			if err != nil {
				w.trail.Write([]byte(err.Error() + "\n"))
				break
			}
			w.trail.Write(append(frame, '\n'))
		}
		link.Close(jsonrpc.CloseNormal, "")
	}
}
