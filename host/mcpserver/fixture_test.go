package mcpserver_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"meanwhile/host/cli"
	"meanwhile/host/internal/hosttest"
)

const within = 30 * time.Second

// The test program is the real one when it is told so: the stdio door is tested
// as a process of its own.
func TestMain(m *testing.M) {
	if os.Getenv("MEANWHILE_TEST_RUN") != "" {
		os.Exit(cli.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

const (
	legacy = "2025-06-18"
	newest = "2026-07-28"
)

// agent is one client of the SDK, as an agent's program has it.
type agent struct {
	*mcp.ClientSession
	t *testing.T
}

type options struct {
	protocol string
	hold     string            // of the door; "" = the client's limit
	name     string            // of the client
	token    string            // HTTP
	header   map[string]string // HTTP
	client   *mcp.ClientOptions
	env      []string // stdio
	dir      string   // stdio
	cmd      **exec.Cmd
}

// doors runs a test over each door in each generation of the protocol.
func doors(t *testing.T, f func(t *testing.T, h *hosttest.Host, connect func(o options) *agent)) {
	for _, door := range []string{"stdio", "http"} {
		for _, protocol := range []string{legacy, newest} {
			t.Run(door+" "+protocol, func(t *testing.T) {
				t.Parallel()
				h := hosttest.Start(t, hosttest.Options{})
				token, _ := h.Token("agent", "ask")
				f(t, h, func(o options) *agent {
					o.protocol, o.token = protocol, token
					if door == "stdio" {
						return stdio(t, h.Config().Data, o)
					}
					return overHTTP(t, h, o)
				})
			})
		}
	}
}

func stdio(t *testing.T, data string, o options) *agent {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"mcp", "--data", data}
	if o.hold != "" {
		args = append(args, "--hold", o.hold)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), "MEANWHILE_TEST_RUN=1")
	cmd.Env = append(cmd.Env, o.env...)
	cmd.Stderr = t.Output()
	cmd.Dir = o.dir
	if o.cmd != nil {
		*o.cmd = cmd
	}
	return join(t, &mcp.CommandTransport{Command: cmd}, o)
}

func overHTTP(t *testing.T, h *hosttest.Host, o options) *agent {
	t.Helper()
	if o.hold != "" {
		o.header = with(o.header, "Meanwhile-Hold", strings.TrimSuffix(o.hold, "s"))
	}
	if o.header["Meanwhile-Holder"] == "" {
		o.header = with(o.header, "Meanwhile-Holder", "process "+t.Name())
	}
	client := &http.Client{Transport: headers{o.token, o.header}}
	return join(t, &mcp.StreamableClientTransport{Endpoint: h.URL("/mcp"), HTTPClient: client, DisableStandaloneSSE: true, MaxRetries: -1}, o)
}

func with(m map[string]string, key, value string) map[string]string {
	out := map[string]string{key: value}
	for k, v := range m {
		out[k] = v
	}
	return out
}

// headers adds to each request what an agent's configuration would.
type headers struct {
	token string
	more  map[string]string
}

func (h headers) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+h.token)
	for k, v := range h.more {
		r.Header.Set(k, v)
	}
	return http.DefaultTransport.RoundTrip(r)
}

func join(t *testing.T, transport mcp.Transport, o options) *agent {
	t.Helper()
	if o.name == "" {
		o.name = "test-agent"
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	c := mcp.NewClient(&mcp.Implementation{Name: o.name, Version: "1"}, o.client)
	s, err := c.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: o.protocol})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return &agent{s, t}
}

type answerItem struct {
	ID       string   `json:"id"`
	Selected []string `json:"selected"`
	Custom   string   `json:"custom"`
}

// said is a result of any of the tools.
type said struct {
	Status       string       `json:"status"`
	CallID       string       `json:"callId"`
	Answers      []answerItem `json:"answers"`
	MessageID    string       `json:"messageId"`
	RemainingMs  *int64       `json:"remainingMs"`
	Shown        *bool        `json:"shown"`
	Withdrawn    *bool        `json:"withdrawn"`
	Acknowledged []string     `json:"acknowledged"`
	Messages     []struct {
		MessageID, Kind, CallID, By, Text string
		Answers                           []answerItem
	} `json:"messages"`

	text  string
	error bool
}

type args = map[string]any

// try calls a tool and returns its result or the protocol's error.
func (a *agent) try(ctx context.Context, tool string, in args) (said, error) {
	r, err := a.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: in})
	if err != nil {
		return said{}, err
	}
	var out said
	for _, c := range r.Content {
		out.text += c.(*mcp.TextContent).Text
	}
	if out.error = r.IsError; out.error {
		return out, nil
	}
	raw, err := json.Marshal(r.StructuredContent)
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(raw, &out)
}

func (a *agent) call(tool string, in args) said {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	out, err := a.try(ctx, tool, in)
	if err != nil {
		a.t.Fatalf("%s: %v", tool, err)
	}
	return out
}

// begin calls a tool and returns what it will say.
func (a *agent) begin(tool string, in args) <-chan said {
	out := make(chan said, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		s, err := a.try(ctx, tool, in)
		if err != nil {
			a.t.Errorf("%s: %v", tool, err)
		}
		out <- s
	}()
	return out
}

// store is one question; more is added to it.
func store(more args) args {
	in := args{"questions": []args{{"id": "store", "question": "Which store?", "options": []args{{"label": "SQLite"}, {"label": "Postgres, hosted"}}}}}
	for k, v := range more {
		in[k] = v
	}
	return in
}

const postgres = `[{"id":"store","selected":["Postgres, hosted"]}]`

func person(h *hosttest.Host) *hosttest.Client { return h.Connect("phone", "read", "answer") }

// late answers a continued ask.
func late(c *hosttest.Client, sessionID, callID, submission string) {
	var out struct{ Accepted bool }
	c.Call("userQuestions/answer", args{"sessionId": sessionID, "callId": callID, "submissionId": submission,
		"answer": args{"answers": json.RawMessage(postgres)}}, &out)
	if !out.Accepted {
		panic("the late answer was not accepted")
	}
}

// sessionOf finds the one session of a host.
func sessionOf(c *hosttest.Client) (id string) {
	c.Follow("host/follow", args{}, func(raw json.RawMessage) bool {
		var item struct{ Sessions []struct{ ID string } }
		if json.Unmarshal(raw, &item) == nil && len(item.Sessions) == 1 {
			id = item.Sessions[0].ID
		}
		return true
	})
	return id
}

// events are those on disk now.
func events(c *hosttest.Client, sessionID string) (types string, admitted int) {
	var seq int64 = -1
	last := int64(-1)
	c.Follow("session/follow", args{"sessionId": sessionID}, func(raw json.RawMessage) bool {
		var item struct {
			Header json.RawMessage
			Seq    int64
			Events []hosttest.Event
		}
		if err := json.Unmarshal(raw, &item); err != nil {
			return true
		}
		if item.Header != nil {
			seq = item.Seq
		}
		for _, e := range item.Events {
			types += e.Type + " "
			if e.Type == "user/message" {
				admitted++
			}
			last = e.Seq
		}
		return last >= seq
	})
	return types, admitted
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("text %q does not say %q", text, part)
		}
	}
}
