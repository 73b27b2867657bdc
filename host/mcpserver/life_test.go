package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"meanwhile/host/internal/hosttest"
	"meanwhile/host/session/logstore"
)

// An agent killed at each point between hand-over and acknowledgement gets the
// reply again, and never once it has acknowledged it.
func TestKilledAgent(t *testing.T) {
	for _, tc := range []struct {
		name     string
		before   func(me *agent, cmd *exec.Cmd)
		again    bool
		admitted int
	}{
		{"before it is handed over", func(*agent, *exec.Cmd) {}, true, 1},
		{"after it was handed over", func(me *agent, _ *exec.Cmd) { me.call("check_inbox", args{}) }, true, 1},
		{"after it called again", func(me *agent, _ *exec.Cmd) { me.call("check_inbox", args{}); me.call("check_inbox", args{}) }, false, 1},
		{"after it said so", func(me *agent, _ *exec.Cmd) {
			s := me.call("check_inbox", args{})
			me.call("check_inbox", args{"acknowledge": []string{s.Messages[0].MessageID}})
		}, false, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := hosttest.Start(t, hosttest.Options{})
			desk := person(h)
			var cmd *exec.Cmd
			me := stdio(t, h.Config().Data, options{protocol: newest, cmd: &cmd})
			asked := me.call("ask_user_question", store(args{"timeout": 1}))
			session := sessionOf(desk)
			late(desk, session, asked.CallID, "press")
			tc.before(me, cmd)
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = me.Wait() // it ended with the process
			next := stdio(t, h.Config().Data, options{protocol: newest})
			// The host sees the connection's end a moment after it; until then
			// the message is leased.
			var s said
			for n := 0; n < 100 && len(s.Messages) == 0 && tc.again; n++ {
				s = next.call("check_inbox", args{})
			}
			if got := len(s.Messages) == 1 && s.Messages[0].MessageID == "press"; got != tc.again {
				t.Errorf("handed over again: %+v, want %v", s, tc.again)
			}
			if s := next.call("check_inbox", args{}); len(s.Messages) != 0 {
				t.Errorf("handed over once more: %+v", s)
			}
			if _, admitted := events(desk, session); admitted != tc.admitted {
				t.Errorf("admitted %d times, want %d", admitted, tc.admitted)
			}
		})
	}
}

// A host that stops and comes back finds the call still there: it is made again
// on the new connection, and the ask is the same.
func TestHostRestartsDuringACall(t *testing.T) {
	h := hosttest.Start(t, hosttest.Options{})
	me, desk := stdio(t, h.Config().Data, options{protocol: newest}), person(h)
	asked := me.begin("ask_user_question", store(args{"timeout": 600}))
	card := desk.Next()
	h.Restart()
	s := <-asked
	if s.Status != "pending" || s.CallID != card.Request.Wait.CallID {
		t.Fatalf("after the restart: %+v", s)
	}
	desk = person(h)
	late(desk, sessionOf(desk), s.CallID, "press")
	if s := me.call("await_answer", args{"callId": s.CallID}); s.Status != "answered" {
		t.Errorf("await: %+v", s)
	}
}

// Without a host the first call starts one, which outlives the agent.
func TestStartsAHost(t *testing.T) {
	dir, err := os.MkdirTemp("", "mw")
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	me := stdio(t, data, options{protocol: newest, hold: "1s", env: []string{
		"MEANWHILE_LISTEN=127.0.0.1:0", "HOME=" + dir, "XDG_CONFIG_HOME=" + dir}})
	s := me.call("ask_user_question", store(args{"timeout": 600}))
	if s.Status != "pending" {
		t.Errorf("ask: %+v", s)
	}
	if err := me.Close(); err != nil {
		t.Error(err)
	}
	var locked *logstore.LockedError
	if _, err := logstore.Open(data, logstore.Options{}); !errors.As(err, &locked) {
		t.Fatalf("the host went with the agent: %v", err)
	}
	if err := syscall.Kill(locked.PID, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	until(t, "the host stops", func() bool {
		b, err := logstore.Open(data, logstore.Options{})
		if err == nil {
			err = b.Close()
		}
		return err == nil
	})
	if err := os.RemoveAll(dir); err != nil {
		t.Error(err)
	}
}

func TestNoHost(t *testing.T) {
	me := stdio(t, t.TempDir(), options{protocol: newest, env: []string{"MEANWHILE_LISTEN=nonsense"}})
	if s := me.call("check_inbox", args{}); !s.error || !strings.Contains(s.text, "MEANWHILE_LISTEN") {
		t.Errorf("got %+v, want the reason why no host started", s)
	}
}

// Two processes at once: each is handed what the other was not.
func TestTwoProcesses(t *testing.T) {
	h := hosttest.Start(t, hosttest.Options{})
	desk := person(h)
	a, b := stdio(t, h.Config().Data, options{protocol: newest}), stdio(t, h.Config().Data, options{protocol: legacy})
	asked := a.call("ask_user_question", store(args{"timeout": 1}))
	late(desk, sessionOf(desk), asked.CallID, "press")
	if s := a.call("check_inbox", args{}); len(s.Messages) != 1 {
		t.Fatalf("first: %+v", s)
	}
	if s := b.call("check_inbox", args{}); len(s.Messages) != 0 {
		t.Errorf("handed to both: %+v", s)
	}
	// Whoever asks for the ask by its id is told.
	a.call("check_inbox", args{})
	if s := b.call("await_answer", args{"callId": asked.CallID}); s.Status != "answered" {
		t.Errorf("the other process: %+v", s)
	}
}

// Without a holder only an acknowledgement by id counts over HTTP.
func TestHTTPWithoutAHolder(t *testing.T) {
	h := hosttest.Start(t, hosttest.Options{})
	token, _ := h.Token("agent", "ask")
	desk := person(h)
	client := &http.Client{Transport: headers{token, map[string]string{"Meanwhile-Key": "ci"}}}
	me := join(t, &mcp.StreamableClientTransport{Endpoint: h.URL("/mcp"), HTTPClient: client, DisableStandaloneSSE: true}, options{protocol: newest})
	asked := me.call("ask_user_question", store(args{"timeout": 1}))
	session := sessionOf(desk)
	late(desk, session, asked.CallID, "press")
	if s := me.call("check_inbox", args{}); len(s.Messages) != 1 {
		t.Fatalf("check_inbox: %+v", s)
	}
	me.call("check_inbox", args{})
	if _, admitted := events(desk, session); admitted != 0 {
		t.Error("another call acknowledged for a process that nobody knows")
	}
	if s := me.call("await_answer", args{"callId": asked.CallID}); s.Status != "answered" || s.MessageID != "press" {
		t.Errorf("await of a reply that was handed over: %+v", s)
	}
	if s := me.call("check_inbox", args{"acknowledge": []string{"press"}}); len(s.Acknowledged) != 1 {
		t.Errorf("acknowledge: %+v", s)
	}
	if _, admitted := events(desk, session); admitted != 1 {
		t.Errorf("admitted %d times, want once", admitted)
	}
}

// A closed stream is the end of the call and not of the ask, in both
// generations of the protocol.
func TestClosedStream(t *testing.T) {
	for _, protocol := range []string{legacy, newest} {
		t.Run(protocol, func(t *testing.T) {
			h := hosttest.Start(t, hosttest.Options{})
			token, _ := h.Token("agent", "ask")
			desk := person(h)
			header := map[string]string{"Meanwhile-Key": "k", "Meanwhile-Holder": "h"}
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan error, 1)
			go func() {
				_, _, err := post(ctx, h, token, callOf(t, protocol, "ask_user_question", store(args{"timeout": 600})), with(header, "MCP-Protocol-Version", protocol))
				ended <- err
			}()
			card := desk.Next()
			cancel()
			if err := <-ended; err == nil {
				t.Error("the cut call was answered")
			}
			select {
			case <-card.Gone:
				t.Fatal("the question went with the stream")
			default:
			}
			card.Answer(postgres)
			<-card.Gone
			// Sent again, as a new call: its answer, and no second card.
			me := overHTTP(t, h, options{protocol: protocol, token: token, header: header})
			s := me.call("ask_user_question", store(args{"timeout": 600}))
			if s.CallID != card.Request.Wait.CallID {
				t.Errorf("sent again: %+v, want the ask %s", s, card.Request.Wait.CallID)
			}
			if s.Status != "answered" {
				s = me.call("await_answer", args{"callId": s.CallID})
			}
			if s.Status != "answered" {
				t.Errorf("await: %+v", s)
			}
			if types, _ := events(desk, sessionOf(desk)); strings.Count(types, "tool/call ") != 1 {
				t.Errorf("log: %s", types)
			}
		})
	}
}

// callOf is a tool call as it stands in the body of a request.
func callOf(t *testing.T, protocol, tool string, in args) []byte {
	t.Helper()
	params := args{"name": tool, "arguments": in}
	if protocol == newest {
		params["_meta"] = args{"io.modelcontextprotocol/protocolVersion": newest, "io.modelcontextprotocol/clientInfo": args{"name": "raw", "version": "1"},
			"io.modelcontextprotocol/clientCapabilities": args{}}
	}
	body, err := json.Marshal(args{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// post sends one body to the door and reads the whole response.
func post(ctx context.Context, h *hosttest.Host, token string, body []byte, header map[string]string) (int, string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL("/mcp"), bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if header["MCP-Protocol-Version"] == newest {
		r.Header.Set("Mcp-Method", "tools/call")
		r.Header.Set("Mcp-Name", "ask_user_question")
	}
	for k, v := range header {
		r.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(raw), err
}

func TestGate(t *testing.T) {
	h := hosttest.Start(t, hosttest.Options{})
	ask, _ := h.Token("agent", "ask")
	answer, _ := h.Token("phone", "read", "answer")
	for _, tc := range []struct {
		name   string
		token  string
		body   []byte
		header map[string]string
		want   int
	}{
		{name: "no token", want: http.StatusForbidden},
		{name: "a wrong token", token: "mwt_x", want: http.StatusUnauthorized},
		{name: "a token that answers", token: answer, want: http.StatusForbidden},
		{name: "another site", token: ask, header: map[string]string{"Origin": "https://evil.example"}, want: http.StatusForbidden},
		{name: "another port of this machine", token: ask, header: map[string]string{"Origin": "http://127.0.0.1:1"}, want: http.StatusForbidden},
		{name: "ten megabytes", token: ask, body: bytes.Repeat([]byte(" "), 10<<20), want: http.StatusRequestEntityTooLarge},
		{name: "a long key", token: ask, header: map[string]string{"Meanwhile-Key": strings.Repeat("k", 201)}, want: http.StatusBadRequest},
		{name: "a hold of a word", token: ask, header: map[string]string{"Meanwhile-Hold": "long"}, want: http.StatusBadRequest},
		{name: "a good one", token: ask, want: http.StatusOK},
	} {
		body := tc.body
		if body == nil {
			body = callOf(t, legacy, "check_inbox", args{})
		}
		status, text, err := post(t.Context(), h, tc.token, body, with(tc.header, "MCP-Protocol-Version", legacy))
		if err != nil || status != tc.want {
			t.Errorf("%s: %d %q, %v; want %d", tc.name, status, text, err, tc.want)
		}
	}
}

// A client that asks for progress is told that the call goes on.
func TestProgress(t *testing.T) {
	h := hosttest.Start(t, hosttest.Options{})
	desk := person(h)
	told := make(chan *mcp.ProgressNotificationParams, 10)
	me := stdio(t, h.Config().Data, options{protocol: newest, client: &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { told <- r.Params }}})
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	params := &mcp.CallToolParams{Name: "ask_user_question", Arguments: store(args{"timeout": 600})}
	params.SetProgressToken("p1")
	ended := make(chan error, 1)
	go func() { _, err := me.CallTool(ctx, params); ended <- err }()
	card := desk.Next()
	select {
	case p := <-told:
		if p.ProgressToken != "p1" || p.Progress != 10 {
			t.Errorf("progress %+v", p)
		}
	case <-ctx.Done():
		t.Error("no progress")
	}
	card.Answer(postgres)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// What models read: titles, annotations, one type for each member.
func TestTools(t *testing.T) {
	h := hosttest.Start(t, hosttest.Options{})
	me := stdio(t, h.Config().Data, options{protocol: legacy})
	list, err := me.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
		if tool.Title == "" || tool.Description == "" || tool.Annotations == nil || tool.OutputSchema == nil {
			t.Errorf("%s: title %q, annotations %v", tool.Name, tool.Title, tool.Annotations)
		}
		for _, schema := range []any{tool.InputSchema, tool.OutputSchema} {
			eachType(schema, func(v any) {
				if _, ok := v.(string); !ok {
					t.Errorf("%s: type %v is not one type", tool.Name, v)
				}
			})
		}
	}
	if got, want := strings.Join(names, " "), "ask_user_question await_answer check_inbox withdraw_question"; got != want {
		t.Errorf("tools %s, want %s", got, want)
	}
}

// eachType visits every "type" of a schema, except a property of that name.
func eachType(schema any, f func(any)) {
	switch s := schema.(type) {
	case map[string]any:
		for k, v := range s {
			if k == "type" {
				f(v)
			} else {
				eachType(v, f)
			}
		}
	case []any:
		for _, v := range s {
			eachType(v, f)
		}
	}
}

// until looks again and again, as nothing tells when it happens.
func until(t *testing.T, what string, happened func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for over := time.After(within); !happened(); {
		select {
		case <-over:
			t.Fatalf("%s: not within %v", what, within)
		case <-tick.C:
		}
	}
}
