package event

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"meanwhile/shared/event/value"
)

func TestEnvelopeKeepsUnknownFields(t *testing.T) {
	for name, line := range map[string]string{
		"plain":     `{"seq":0,"time":5,"type":"turn/start","data":{"turn":1}}`,
		"extra":     `{"seq":7,"time":-1,"type":"turn/end","data":{"turn":1,"new":[1]},"trace":"x"}`,
		"ignorable": `{"seq":3,"time":5,"type":"future/thing","data":{},"ignorable":true}`,
	} {
		e, err := ParseEvent([]byte(line))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := string(AppendEvent(nil, e)); got != line {
			t.Errorf("%s: got %s, want %s", name, got, line)
		}
	}
}

func TestEnvelopeRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ line, want string }{
		"unknown type":   {`{"seq":0,"time":5,"type":"future/thing","data":{}}`, "unknown type"},
		"not true":       {`{"seq":0,"time":5,"type":"future/thing","data":{},"ignorable":1}`, "unknown type"},
		"negative seq":   {`{"seq":-1,"time":5,"type":"turn/start","data":{}}`, "seq"},
		"fraction":       {`{"seq":0.5,"time":5,"type":"turn/start","data":{}}`, "seq"},
		"no time":        {`{"seq":0,"type":"turn/start","data":{}}`, "time"},
		"data no object": {`{"seq":0,"time":5,"type":"turn/start","data":[]}`, "data"},
		"cut":            {`{"seq":0,`, "JSON"},
	} {
		if _, err := ParseEvent([]byte(tc.line)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want an error naming %q", name, err, tc.want)
		}
	}
}

func TestHeader(t *testing.T) {
	const full = `{"version":1,"id":"s","createdAt":9,"title":"T","cwd":"/w","parentSession":"p","inheritedEventCount":4,` +
		`"delegationDepth":1,"agent":{"kind":"external","name":"ci","cwd":"/c","x":1},"key":"k","owner":"o","archived":true,"later":{}}`
	h, err := ParseHeader([]byte(full))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(AppendHeader(nil, h)); got != full {
		t.Errorf("got %s, want %s", got, full)
	}
	if !h.External() {
		t.Error("an external agent's session is not External")
	}
	for name, tc := range map[string]struct{ line, want string }{
		"version":  {`{"version":2,"id":"s","createdAt":9}`, "version"},
		"no id":    {`{"version":1,"createdAt":9}`, "id"},
		"empty id": {`{"version":1,"id":"","createdAt":9}`, "id"},
		"title":    {`{"version":1,"id":"s","createdAt":9,"title":1}`, "title"},
		"agent":    {`{"version":1,"id":"s","createdAt":9,"agent":{}}`, "kind"},
	} {
		if _, err := ParseHeader([]byte(tc.line)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want an error naming %q", name, err, tc.want)
		}
	}
	if _, err := ParseHeader([]byte(`{"version":2,"id":"s","createdAt":9}`)); !errors.Is(err, ErrVersion) {
		t.Errorf("another version: %v", err)
	}
}

func TestDataRoundTrips(t *testing.T) {
	reply := Message{ID: "m", Source: Source{Kind: SourceReply, CallID: "c", Outcome: OutcomeAnswered, By: "Phone"}, Text: "{}"}
	same := func(name string, got any, err error, want any) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	ts := TurnStart{3}
	gts, err := DecodeTurnStart(ts.Draft().Data)
	same("turn/start", gts, err, ts)
	te := TurnEnd{3, TurnError, "model unreachable"}
	gte, err := DecodeTurnEnd(te.Draft().Data)
	same("turn/end", gte, err, te)
	st := Step{3, 2}
	gst, err := DecodeStep(st.StartDraft().Data)
	same("step", gst, err, st)
	rh := RequestHeader{"p", "m", "be brief", []ToolSpec{{"t", "d", []byte(`{"type":"object"}`)}}, HeaderResume}
	grh, err := DecodeRequestHeader(rh.Draft().Data)
	same("request/header", grh, err, rh)
	tc := ToolCall{3, 2, "c", "bash", `{"a": 1`, "r"}
	gtc, err := DecodeToolCall(tc.Draft().Data)
	same("tool/call", gtc, err, tc)
	tr := ToolResult{3, 2, "m", "c", true, "no", "E", "X", []byte(`{"k":1}`)}
	gtr, err := DecodeToolResult(tr.Draft().Data)
	same("tool/result", gtr, err, tr)
	pd := PTCDispatch{"r", "p", "s", "n", []byte(`{"q":[]}`), false, "ok"}
	gpd, err := DecodePTCDispatch(pd.Draft().Data)
	same("tool/ptc-dispatch", gpd, err, pd)
	as := Assistant{3, 2, "a", []Block{{Type: BlockReasoning, Text: "hm"}, {Type: BlockText, Text: "hi"},
		{Type: BlockToolCall, CallID: "c", Name: "bash", Arguments: "{}"}}, []byte(`{"in":1}`), true}
	gas, err := DecodeAssistant(as.Draft().Data)
	same("assistant/message", gas, err, as)
	um, err := DecodeUserMessage(reply.Draft().Data)
	um.Raw = nil
	same("user/message", um, err, reply)
	sp := Spliced{NextStep, 1, 2, []Message{reply}, OutcomeCanceled}
	gsp, err := DecodeSpliced(sp.Draft().Data)
	if err == nil {
		gsp.Inserted[0].Raw = nil
	}
	same("agent/inbox/spliced", gsp, err, sp)
}

func TestMessageKeepsWhatItDoesNotKnow(t *testing.T) {
	const raw = `{"id":"m","source":{"kind":"webhook","from":"x"},"content":[{"type":"image","url":"u"},{"type":"text","text":"a"},{"type":"text","text":"b"}],"z":1}`
	v, err := value.ParseString(raw)
	if err != nil {
		t.Fatal(err)
	}
	m, err := MessageOf(v)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(m.Bytes()); got != raw {
		t.Errorf("got %s, want %s", got, raw)
	}
	if m.Text != "a\nb" {
		t.Errorf("text = %q", m.Text)
	}
}

func TestHeaderSameIgnoresTheReason(t *testing.T) {
	a := RequestHeader{Provider: "p", Model: "m", Tools: []ToolSpec{}, Reason: HeaderInitial}
	b := a
	b.Reason = HeaderResume
	if !a.Same(b) {
		t.Error("the reason alone makes a header differ")
	}
	b.Tools = nil
	if a.Same(b) {
		t.Error("no tools and an absent list are the same")
	}
}

func FuzzParseEvent(f *testing.F) {
	f.Add([]byte(`{"seq":0,"time":5,"type":"turn/start","data":{"turn":1},"x":null}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := ParseEvent(b)
		if err != nil {
			return
		}
		again, err := ParseEvent(AppendEvent(nil, e))
		if err != nil {
			t.Fatalf("%s written back: %v", b, err)
		}
		if d := cmp.Diff(e, again, cmp.AllowUnexported(value.Value{})); d != "" {
			t.Fatal(d)
		}
	})
}
