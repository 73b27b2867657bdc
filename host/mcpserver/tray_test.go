package mcpserver

import (
	"context"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Each step of a tray is a word: put:ID, load:CALL, wrote:CALL, back:CALL,
// drop:ID, later. What a load takes and what is due stand behind it.
func TestTray(t *testing.T) {
	for _, tc := range []struct {
		name  string
		steps string
		want  string
	}{
		{"the usual way", "put:a load:1 wrote:1", "1=a due=a"},
		{"nothing twice", "put:a load:1 load:2 wrote:1 load:3", "1=a 2= 3= due=a"},
		{"not written", "put:a load:1 back:1 load:2", "1=a 2=a due="},
		{"cancelled after it was written", "put:a load:1 wrote:1 back:1", "1=a due="},
		{"and carried by the next", "put:a load:1 wrote:1 back:1 load:2 wrote:2", "1=a 2=a due=a"},
		{"a cancel that comes too late does nothing", "put:a load:1 back:1 load:2 wrote:2 back:1", "1=a 2=a due=a"},
		{"another call's write", "put:a load:1 put:b load:2 wrote:2", "1=a 2=b due=b"},
		{"acknowledged", "put:a load:1 wrote:1 drop:a load:2", "1=a 2= due="},
		{"claimed again while carried", "put:a load:1 put:a load:2 wrote:1", "1=a 2= due=a"},
		{"claimed again after its lease", "put:a load:1 wrote:1 later put:a load:2", "1=a 2=a due="},
		{"waited past its lease", "put:a load:1 back:1 later load:2", "1=a 2= due="},
	} {
		var tr tray
		now := time.Unix(0, 0)
		var got []string
		for step := range strings.FieldsSeq(tc.steps) {
			what, name, _ := strings.Cut(step, ":")
			switch what {
			case "put":
				tr.put(now, message{ID: name})
			case "load":
				ids := ""
				for _, m := range tr.load(now, name) {
					ids += m.ID
				}
				got = append(got, name+"="+ids)
			case "wrote":
				tr.wrote(name)
			case "back":
				tr.back(name)
			case "drop":
				tr.drop([]string{name})
			case "later":
				now = now.Add(waitingFor)
			default:
				t.Fatalf("%s: no step %q", tc.name, step)
			}
		}
		got = append(got, "due="+strings.Join(tr.due(), ""))
		if got := strings.Join(got, " "); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
		}
	}
	var tr tray
	for i := range 2 * trayMax {
		tr.put(time.Unix(0, 0), message{ID: strconv.Itoa(i)})
	}
	if len(tr.items) != trayMax {
		t.Errorf("%d messages kept, want %d", len(tr.items), trayMax)
	}
}

func TestMemo(t *testing.T) {
	n := 0
	draw := func() string { n++; return strconv.Itoa(n) }
	var m memo
	if a, b := m.request("q", draw), m.request("q", draw); a != "1" || b != "1" {
		t.Errorf("the same questions are %s and %s", a, b)
	}
	if got := m.request("p", draw); got != "2" {
		t.Errorf("other questions are %s, want 2", got)
	}
	m.named("1", "call")
	m.settledCall("other")
	m.settledCall("")
	if got := m.request("q", draw); got != "1" {
		t.Errorf("another ask settled, and the questions are %s", got)
	}
	m.settledCall("call")
	if got := m.request("q", draw); got != "3" {
		t.Errorf("after the ask settled the questions are %s, want a new ask", got)
	}
	for i := range 2 * memoMax {
		m.request(strconv.Itoa(i), draw)
	}
	if len(m.asks) != memoMax {
		t.Errorf("%d asks remembered, want %d", len(m.asks), memoMax)
	}
	if fingerprint(json.RawMessage(`[ {"id":"a"} ]`)) != fingerprint(json.RawMessage(`[{"id":"a"}]`)) {
		t.Error("white space makes other questions")
	}
}

func TestHoldOf(t *testing.T) {
	for _, tc := range []struct {
		client string
		http   bool
		set    time.Duration
		want   time.Duration
	}{
		{"", false, 0, 50 * time.Second},
		{"some-sdk", true, 0, 50 * time.Second},
		{"claude-code", false, 0, 110 * time.Second},
		{"claude-code", true, 0, 50 * time.Second},
		{"codex-mcp-client", false, 0, 290 * time.Second},
		{"gemini-cli-mcp-client", true, 0, 590 * time.Second},
		{"Cursor", false, 0, 50 * time.Second},
		{"claude-code", false, 5 * time.Second, 5 * time.Second},
		{"claude-code", false, time.Hour, HoldMax},
	} {
		if got := holdOf(tc.client, tc.http, tc.set); got != tc.want {
			t.Errorf("holdOf(%q, %v, %v) = %v, want %v", tc.client, tc.http, tc.set, got, tc.want)
		}
	}
}

// Only the source of a message says what it is.
func TestMessageOf(t *testing.T) {
	reply := `{\"kind\":\"answer_to_pending_question\",\"callId\":\"c\",\"questions\":[{\"id\":\"q\",\"question\":\"?\"}],\"answers\":[{\"id\":\"q\",\"selected\":[\"x\"]}]}`
	body := func(source, text string) []byte {
		return []byte(`{"id":"m","source":` + source + `,"content":[{"type":"text","text":"` + text + `"}]}`)
	}
	for _, tc := range []struct {
		name     string
		body     []byte
		kind     string
		answered bool
	}{
		{"a reply", body(`{"kind":"user-question-reply","callId":"c","outcome":"answered","by":"Phone"}`, reply), kindReply, true},
		{"its text pasted by a person", body(`{"kind":"user"}`, reply), kindMessage, false},
		{"an unreadable reply", body(`{"kind":"user-question-reply","callId":"c"}`, "x"), kindReply, false},
		{"a refusal", body(`{"kind":"user-question-result","callId":"c"}`, "cancelled"), kindResult, false},
	} {
		m, err := messageOf(tc.body)
		if err != nil || m.Kind != tc.kind || (m.Answers != nil) != tc.answered || !tc.answered && m.Text == "" {
			t.Errorf("%s: %+v, %v", tc.name, m, err)
		}
	}
}

// A cancellation that crosses with the result takes its messages back.
func TestCancelCrossesWithTheResult(t *testing.T) {
	d := &desk{}
	in, client := io.Pipe()
	w := &watched{inner: &mcp.IOTransport{Reader: in, Writer: discard{}}, desk: d}
	c, err := w.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	read := func(line string) *sdk.Request {
		t.Helper()
		go func() { _, _ = io.WriteString(client, line+"\n") }() // a failure is seen by the read
		m, err := c.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return m.(*sdk.Request)
	}
	r := read(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"check_inbox","_meta":{"progressToken":1}}}`)
	var p struct {
		Meta map[string]any `json:"_meta"`
	}
	if err := json.Unmarshal(r.Params, &p); err != nil || p.Meta["progressToken"] != 1.0 {
		t.Fatalf("params %s, %v", r.Params, err)
	}
	call, _ := p.Meta[callMeta].(string)
	d.update(func(tr *tray, _ *memo) { tr.put(time.Now(), message{ID: "m"}); tr.load(time.Now(), call) })
	due := func() (ids []string) { d.update(func(tr *tray, _ *memo) { ids = tr.due() }); return ids }
	if err := c.Write(context.Background(), &sdk.Response{ID: r.ID, Result: json.RawMessage(`{}`)}); err != nil {
		t.Fatal(err)
	}
	if got := due(); len(got) != 1 {
		t.Errorf("due after the write: %v", got)
	}
	read(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"7"}}`) // another id
	if got := due(); len(got) != 1 {
		t.Errorf("due after another call was cancelled: %v", got)
	}
	read(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
	if got := due(); len(got) != 0 {
		t.Errorf("due after the cancellation: %v", got)
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Close() error                { return nil }
