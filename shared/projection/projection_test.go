package projection

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"meanwhile/shared/event"
	"meanwhile/shared/event/value"
)

// timedHeaderData is a request/header that offers the timed tool.
const (
	timedHeaderData  = `{"header":{"config":{"provider":"p","model":"m"},"tools":[{"name":"ask_user_question","parameters":{"properties":{"questions":{},"timeout":{}}}}]},"reason":"initial"}`
	legacyHeaderData = `{"header":{"config":{"provider":"p","model":"m"},"tools":[{"name":"ask_user_question","parameters":{"properties":{"questions":{}}}}]},"reason":"change"}`
	oneQuestion      = `{"questions":[{"id":"db","question":"Which?","options":[{"label":"A"},{"label":"B"}]}]}`
)

// log builds events; seq and time follow the order.
type log struct{ events []event.Event }

func (l *log) add(typ, data string) *log {
	n := int64(len(l.events))
	l.events = append(l.events, event.Event{Seq: n, Time: 1000 + n, Type: typ, Data: []byte(data)})
	return l
}

func (l *log) draft(d event.Draft) *log { return l.add(d.Type, string(d.Data)) }

func (l *log) timed() *log { return l.add(event.TypeRequestHeader, timedHeaderData) }

func (l *log) call(id, name, args string) *log {
	return l.draft(event.ToolCall{Turn: 1, Step: 1, CallID: id, Name: name, Arguments: args}.Draft())
}

func (l *log) ask(id string) *log { return l.call(id, ToolName, oneQuestion) }

func (l *log) result(id, text, code string) *log {
	return l.draft(event.ToolResult{Turn: 1, Step: 1, MessageID: "m-" + id, CallID: id, Text: text, IsError: code != "", ErrName: "E", ErrCode: code}.Draft())
}

func (l *log) pending(id string) *log { return l.result(id, `{"pending":true,"callId":"`+id+`"}`, "") }

func (l *log) reply(msg, id, text string) *log {
	return l.draft(replyMessage(msg, id, text).Draft())
}

func replyMessage(msg, id, text string) event.Message {
	return event.Message{ID: msg, Source: event.Source{Kind: event.SourceReply, CallID: id, Outcome: event.OutcomeAnswered}, Text: text}
}

func fold(t *testing.T, h event.Header, events []event.Event) *Set {
	t.Helper()
	s := NewSet(h)
	for _, e := range events {
		if err := s.Apply(e, nil); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func view(s *Set) string {
	var w value.Writer
	s.Questions.AppendView(&w)
	return string(w.Bytes())
}

// brief is the view as "c1:open c2:continued | c3:[{…}]".
func brief(s *Set) string {
	var out []string
	s.Questions.AllActive(func(a *Active) bool { out = append(out, a.CallID+":"+string(a.State)); return true })
	out = append(out, "|")
	s.Questions.AllSettled(func(a *Settled) bool {
		var w value.Writer
		AppendAnswers(&w, a.Answers)
		out = append(out, a.CallID+":"+string(w.Bytes()))
		return true
	})
	return strings.Join(out, " ")
}

func TestVectors(t *testing.T) {
	raw, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name   string
		Header json.RawMessage
		Events []json.RawMessage
		Want   any
	}
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 18 {
		t.Fatalf("%d vectors, want at least 18", len(cases))
	}
	for _, tc := range cases {
		t.Run(tc.Name, func(t *testing.T) {
			h, err := event.ParseHeader(tc.Header)
			if err != nil {
				t.Fatal(err)
			}
			var events []event.Event
			for _, line := range tc.Events {
				e, err := event.ParseEvent(line)
				if err != nil {
					t.Fatal(err)
				}
				events = append(events, e)
			}
			var got any
			if err := json.Unmarshal([]byte(view(fold(t, h, events))), &got); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.Want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestUserQuestionsClauses(t *testing.T) {
	const answered = `{"answers":[{"id":"db","selected":["A"]}]}`
	l := func() *log { return new(log).timed() }
	for _, tc := range []struct {
		name string
		log  *log
		want string
	}{
		{"before any header is legacy", new(log).ask("c"), " |"},
		{"tools is not an array", new(log).add(event.TypeRequestHeader, `{"header":{"tools":{"name":"ask_user_question","parameters":{"properties":{"timeout":{}}}}}}`).ask("c"), " |"},
		{"tools hold junk beside the tool", new(log).add(event.TypeRequestHeader, `{"header":{"tools":[1,null,{"name":"ask_user_question","parameters":{"properties":{"timeout":false}}}]}}`).ask("c"), "c:open |"},
		{"properties is a list", new(log).add(event.TypeRequestHeader, `{"header":{"tools":[{"name":"ask_user_question","parameters":{"properties":["timeout"]}}]}}`).ask("c"), " |"},
		{"another tool has a timeout", new(log).add(event.TypeRequestHeader, `{"header":{"tools":[{"name":"bash","parameters":{"properties":{"timeout":{}}}}]}}`).ask("c"), " |"},
		{"latest header decides, timed to legacy", l().ask("c1").add(event.TypeRequestHeader, legacyHeaderData).ask("c2"), "c1:open |"},
		{"a call made timed continues under a legacy header", l().ask("c1").add(event.TypeRequestHeader, legacyHeaderData).pending("c1"), "c1:continued |"},
		{"another tool", l().call("c", "bash", oneQuestion), " |"},
		{"timeout -1 is tracked", l().call("c", ToolName, `{"timeout":-1,`+oneQuestion[1:]), "c:open |"},
		{"timeout 0 is refused", l().call("c", ToolName, `{"timeout":0,`+oneQuestion[1:]), " |"},
		{"timeout text is refused", l().call("c", ToolName, `{"timeout":"120",`+oneQuestion[1:]), " |"},
		{"arguments are not JSON", l().call("c", ToolName, `{"questions":`), " |"},
		{"arguments have a duplicate member", l().call("c", ToolName, `{"questions":[],`+oneQuestion[1:]), " |"},
		{"no questions", l().call("c", ToolName, `{"questions":[]}`), " |"},
		{"unreadable call drops nothing", l().ask("c").call("c", ToolName, `{}`), "c:open |"},
		{"wrong-typed multi_select", l().call("c", ToolName, `{"questions":[{"id":"a","question":"?","multi_select":"yes"}]}`), " |"},
		{"null is a wrong type", l().call("c", ToolName, `{"questions":[{"id":"a","question":"?","header":null}]}`), " |"},
		{"unknown members are left out", l().call("c", ToolName, `{"x":1,"questions":[{"id":"a","question":"?","y":{}}]}`), "c:open |"},
		{"pending of a -1 call", l().call("c", ToolName, `{"timeout":-1,`+oneQuestion[1:]).pending("c"), "c:continued |"},
		{"pending must be true", l().ask("c").result("c", `{"pending":"true"}`, ""), " |"},
		{"pending text that is an array", l().ask("c").result("c", `[{"pending":true}]`, ""), " |"},
		{"pending wins over an error", l().ask("c").result("c", `{"pending":true}`, "ODD"), "c:continued |"},
		{"unknown outcome", l().ask("c").result("c", `lost`, event.CodeOutcomeUnknown), "c:continued |"},
		{"not started goes", l().ask("c").result("c", `lost`, event.CodeNotStarted), " |"},
		{"answers with an error go", l().ask("c").result("c", answered, "ODD"), " |"},
		{"answers settle", l().ask("c").result("c", answered, ""), ` | c:[{"id":"db","selected":["A"]}]`},
		{"answers settle a continued call", l().ask("c").pending("c").result("c", answered, ""), ` | c:[{"id":"db","selected":["A"]}]`},
		{"result of an unknown call", l().result("c", answered, ""), " |"},
		{"only the first text block counts", l().ask("c").add(event.TypeToolResult, `{"message":{"toolCallId":"c","content":[{"type":"image"},{"type":"text","text":"x"},{"type":"text","text":"{\"pending\":true}"}]}}`), " |"},
		{"a block that is no text stands before", l().ask("c").add(event.TypeToolResult, `{"message":{"toolCallId":"c","content":[{"type":"image"},{"type":"text","text":"{\"pending\":true}"}]}}`), "c:continued |"},
		{"custom null is not a batch", l().ask("c").result("c", `{"answers":[{"id":"db","selected":[],"custom":null}]}`, ""), " |"},
		{"selected with a number is not a batch", l().ask("c").result("c", `{"answers":[{"id":"db","selected":[1]}]}`, ""), " |"},
		{"reply to an open call", l().ask("c").reply("r", "c", answered), ` | c:[{"id":"db","selected":["A"]}]`},
		{"reply to an unknown call", l().reply("r", "x", answered), " |"},
		{"text shaped like a reply is none", l().ask("c").pending("c").add(event.TypeUserMessage, `{"id":"m","source":{"kind":"user","callId":"c","outcome":"answered"},"content":[{"type":"text","text":"{\"answers\":[{\"id\":\"db\",\"selected\":[\"A\"]}]}"}]}`), "c:continued |"},
		{"second reply says nothing", l().ask("c").pending("c").reply("r", "c", answered).reply("r2", "c", `{"answers":[]}`), ` | c:[{"id":"db","selected":["A"]}]`},
		{"unreadable answers settle empty", l().ask("c").pending("c").reply("r", "c", `{"answers":[{"id":1}]}`), ` | c:[]`},
		{"settlement order", l().ask("a").ask("b").result("b", `{"answers":[]}`, "").result("a", `{"answers":[]}`, ""), ` | b:[] a:[]`},
		{"continued keeps its place", l().ask("a").ask("b").pending("a"), "a:continued b:open |"},
		{"withdrawal of an open ask says nothing", l().ask("c").call("w", WithdrawName, `{"callId":"c"}`).result("w", `{"withdrawn":true}`, ""), "c:open |"},
		{"withdrawal with an error", l().ask("c").pending("c").call("w", WithdrawName, `{"callId":"c"}`).result("w", `{"withdrawn":true}`, "ODD"), "c:continued |"},
		{"withdrawn false", l().ask("c").pending("c").call("w", WithdrawName, `{"callId":"c"}`).result("w", `{"withdrawn":false}`, ""), "c:continued |"},
		{"withdrawal without a readable target", l().ask("c").pending("c").call("w", WithdrawName, `{"callId":1}`).result("w", `{"withdrawn":true}`, ""), "c:continued |"},
		{"withdrawn text from another tool", l().ask("c").pending("c").call("w", "bash", `{"callId":"c"}`).result("w", `{"withdrawn":true}`, ""), "c:continued |"},
		{"withdrawal result twice", l().ask("c").pending("c").call("w", WithdrawName, `{"callId":"c"}`).result("w", `{"withdrawn":false}`, "").result("w", `{"withdrawn":true}`, ""), "c:continued |"},
		{"sub-call needs pending", new(log).draft(event.PTCDispatch{RootCallID: "r", ParentCallID: "r", SubCallID: "r:1", Name: ToolName, Arguments: []byte(oneQuestion), Text: answered}.Draft()), " |"},
		{"sub-call that is an error", new(log).draft(event.PTCDispatch{RootCallID: "r", ParentCallID: "r", SubCallID: "r:1", Name: ToolName, Arguments: []byte(oneQuestion), IsError: true, Text: `{"pending":true}`}.Draft()), " |"},
		{"sub-call of another tool", new(log).draft(event.PTCDispatch{RootCallID: "r", ParentCallID: "r", SubCallID: "r:1", Name: "bash", Arguments: []byte(oneQuestion), Text: `{"pending":true}`}.Draft()), " |"},
		{"sub-call drops the active one of its id", l().ask("x").ask("y").draft(event.PTCDispatch{RootCallID: "r", ParentCallID: "r", SubCallID: "x", Name: ToolName, Arguments: []byte(oneQuestion), Text: `{"pending":true}`}.Draft()), "y:open x:continued |"},
		{"other events say nothing", l().ask("c").draft(event.TurnStart{Turn: 2}.Draft()).draft(event.TurnEnd{Turn: 2, Kind: event.TurnAborted}.Draft()), "c:open |"},
		{"data that is odd is skipped", l().ask("c").add(event.TypeToolResult, `{"message":7}`).add(event.TypeUserMessage, `{"source":"user-question-reply"}`).add(event.TypeToolCall, `{"callId":5}`), "c:open |"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := brief(fold(t, event.Header{ID: "s"}, tc.log.events)); strings.TrimSpace(got) != strings.TrimSpace(tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestApplyReportsWhatChanged(t *testing.T) {
	l := new(log).timed().ask("c").pending("c").draft(event.TurnStart{Turn: 2}.Draft()).reply("r", "c", "x")
	q := NewUserQuestions(event.Header{ID: "s"})
	var got []string
	for _, e := range l.events {
		got = append(got, q.Apply(e))
	}
	if d := cmp.Diff([]string{"", "c", "c", "", "c"}, got); d != "" {
		t.Error(d)
	}
}

func TestSpelling(t *testing.T) {
	qs, p := QuestionsOf(`{"questions":[{"id":"a","question":"?","multi_select":false,"multiSelect":true,"options":[],"header":"","detail":"d","intent":{"kind":"plan-review"}}]}`)
	if p != nil {
		t.Fatal(p)
	}
	var w value.Writer
	AppendQuestions(&w, qs)
	want := `[{"id":"a","question":"?","header":"","options":[],"multiSelect":false}]`
	if got := string(w.Bytes()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestInboxFold(t *testing.T) {
	m := func(id string) event.Message {
		return event.Message{ID: id, Source: event.Source{Kind: event.SourceUser}, Text: id}
	}
	splice := func(target string, start, removed int64, ids ...string) event.Draft {
		d := event.Spliced{Target: target, Start: start, RemovedCount: removed}
		for _, id := range ids {
			d.Inserted = append(d.Inserted, m(id))
		}
		return d.Draft()
	}
	ids := func(b *Inbox) string {
		var out []string
		for _, target := range []string{event.NextStep, event.NextTurn} {
			for _, m := range b.Queue(target) {
				out = append(out, m.ID)
			}
			out = append(out, "/")
		}
		return strings.Join(out, "")
	}
	ok := new(log).draft(splice(event.NextStep, 0, 0, "a", "b")).draft(splice(event.NextTurn, 0, 0, "c")).
		draft(splice(event.NextStep, 1, 0, "d")).draft(splice(event.NextStep, 0, 1, "a"))
	if got := ids(fold(t, event.Header{ID: "s"}, ok.events).Inbox); got != "adb/c/" {
		t.Errorf("queues = %s, want adb/c/", got)
	}
	for name, d := range map[string]event.Draft{
		"start past the end":      splice(event.NextStep, 4, 0, "x"),
		"removing too many":       splice(event.NextStep, 2, 2),
		"negative start":          splice(event.NextStep, -1, 0, "x"),
		"removing more than ever": splice(event.NextStep, 1, 1<<62),
		"pending id":              splice(event.NextTurn, 0, 0, "a"),
		"same id twice":           splice(event.NextTurn, 0, 0, "x", "x"),
		"removed id twice":        splice(event.NextStep, 0, 1, "a", "a"),
		"unknown target":          splice("later", 0, 0, "x"),
		"message without id":      {Type: event.TypeSpliced, Data: []byte(`{"target":"next-step","start":0,"inserted":[{"source":{}}]}`)},
	} {
		s := fold(t, event.Header{ID: "s-7"}, ok.events)
		e := event.Event{Seq: 4, Type: d.Type, Data: d.Data}
		err := s.Apply(e, nil)
		var le *LogError
		if !errors.As(err, &le) || le.Session != "s-7" || le.Seq != 4 {
			t.Errorf("%s: got %v, want a LogError naming session and seq", name, err)
		}
		if got := ids(s.Inbox); got != "adb/c/" {
			t.Errorf("%s: a refused splice left %s", name, got)
		}
	}
	fork := fold(t, event.Header{ID: "f", InheritedEventCount: 2}, append(ok.events[:2:2], event.Event{Seq: 2, Type: event.TypeSpliced, Data: splice(event.NextStep, 0, 0, "z").Data}))
	if got := ids(fork.Inbox); got != "z//" {
		t.Errorf("a fork's queues = %s, want z//", got)
	}
}

func TestRepliesKeepTheirFate(t *testing.T) {
	put := event.Spliced{Target: event.NextStep, Inserted: []event.Message{replyMessage("r1", "c1", "x"), replyMessage("r2", "c2", "x"),
		{ID: "u", Source: event.Source{Kind: event.SourceUser}}}}
	take := event.Spliced{Target: event.NextStep, RemovedCount: 1}
	cancel := event.Spliced{Target: event.NextStep, RemovedCount: 1, Outcome: event.OutcomeCanceled}
	l := new(log).draft(put.Draft()).draft(take.Draft()).draft(replyMessage("r1", "c1", "x").Draft()).draft(cancel.Draft()).
		draft(replyMessage("r9", "c9", "x").Draft())
	r := fold(t, event.Header{ID: "s"}, l.events).Replies
	for id, want := range map[string]Reply{"r1": {"c1", Admitted}, "r2": {"c2", Discarded}, "r9": {"c9", Admitted}} {
		if got, _ := r.Get(id); got != want {
			t.Errorf("%s: got %v, want %v", id, got, want)
		}
	}
	if _, ok := r.Get("u"); ok {
		t.Error("an ordinary message is kept as a reply")
	}
}

// At every cut of a long history the state survives encoding, goes on folding
// to the same end, and the deltas turn one view into the next.
func TestStateAndDeltasAtEveryCut(t *testing.T) {
	l := new(log).timed()
	for i := range 12 {
		l.ask(fmt.Sprint("c", i))
		if i%3 == 0 {
			l.pending(fmt.Sprint("c", i))
		}
	}
	l.draft(event.Spliced{Target: event.NextStep, Inserted: []event.Message{replyMessage("r", "c0", `{"answers":[]}`)}}.Draft()).
		draft(event.Spliced{Target: event.NextStep, RemovedCount: 1}.Draft()).reply("r", "c0", `{"answers":[]}`).
		call("w", WithdrawName, `{"callId":"c3"}`).result("w", `{"withdrawn":true}`, "").
		ask("c1").result("c2", `{"answers":[]}`, "").pending("c1").ask("c0").
		draft(event.PTCDispatch{RootCallID: "r", ParentCallID: "r", SubCallID: "c4", Name: ToolName, Arguments: []byte(oneQuestion), Text: `{"pending":true}`}.Draft()).
		pending("c5")
	h := event.Header{ID: "s"}
	end := view(fold(t, h, l.events))
	for cut := range l.events {
		a := fold(t, h, l.events[:cut])
		var w value.Writer
		a.AppendState(&w)
		doc, err := value.Parse(w.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		b, err := ParseSet(h, doc)
		if err != nil {
			t.Fatalf("cut %d: %v", cut, err)
		}
		for size := 1; size <= 3; size++ {
			applyDelta(t, h, l.events[:cut], l.events[cut:min(cut+size, len(l.events))])
		}
		for _, e := range l.events[cut:] {
			if err := b.Apply(e, nil); err != nil {
				t.Fatal(err)
			}
		}
		if got := view(b); got != end {
			t.Fatalf("cut %d: resumed to %s, want %s", cut, got, end)
		}
	}
}

func applyDelta(t *testing.T, h event.Header, before, batch []event.Event) {
	t.Helper()
	type v struct {
		Active, Settled []map[string]any
	}
	read := func(doc string) (out v) {
		if err := json.Unmarshal([]byte(doc), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	s := fold(t, h, before)
	got := read(view(s))
	var d Delta
	for _, e := range batch {
		if err := s.Apply(e, &d); err != nil {
			t.Fatal(err)
		}
	}
	var w value.Writer
	d.Append(&w, s)
	var ch struct {
		UserQuestions *struct {
			Removed         []string
			Active, Settled []map[string]any
		}
	}
	if err := json.Unmarshal(w.Bytes(), &ch); err != nil {
		t.Fatal(err)
	}
	drop := func(list []map[string]any, id any) []map[string]any {
		out := list[:0:0]
		for _, e := range list {
			if e["callId"] != id {
				out = append(out, e)
			}
		}
		return out
	}
	if q := ch.UserQuestions; q != nil {
		for _, id := range q.Removed {
			got.Active = drop(got.Active, id)
		}
	next:
		for _, e := range q.Active {
			for i, o := range got.Active {
				if o["callId"] == e["callId"] {
					got.Active[i] = e
					continue next
				}
			}
			got.Active = append(got.Active, e)
		}
		for _, e := range q.Settled {
			got.Settled = append(drop(got.Settled, e["callId"]), e)
		}
	} else if !d.Empty() && !d.touched[0] {
		t.Fatal("a delta that is not empty has no part")
	}
	a, _ := json.Marshal(got)
	b, _ := json.Marshal(read(view(s)))
	if na, nb := strings.ReplaceAll(string(a), "null", "[]"), strings.ReplaceAll(string(b), "null", "[]"); na != nb {
		t.Fatalf("after %d events, batch of %d: delta gives %s, fold %s\ndelta %s", len(before), len(batch), na, nb, w.Bytes())
	}
}

func TestParseStateIsStrict(t *testing.T) {
	h := event.Header{ID: "s"}
	var w value.Writer
	fold(t, h, new(log).timed().ask("a").ask("b").pending("b").draft(event.Spliced{Target: event.NextTurn, Inserted: []event.Message{replyMessage("r", "b", "x")}}.Draft()).events).AppendState(&w)
	good := string(w.Bytes())
	for name, swap := range map[string][2]string{
		"version":           {`"version":1`, `"version":2`},
		"unknown member":    {`"timed":true`, `"timed":true,"x":1`},
		"inherited":         {`"inheritedEventCount":0`, `"inheritedEventCount":1`},
		"timed type":        {`"timed":true`, `"timed":1`},
		"duplicate call":    {`"callId":"b","questions"`, `"callId":"a","questions"`},
		"empty call":        {`"callId":"b","questions"`, `"callId":"","questions"`},
		"state":             {`"state":"open"`, `"state":"done"`},
		"question member":   {`"question":"Which?"`, `"question":"Which?","extra":1`},
		"settled is absent": {`"settled":[],`, ``},
		"active no list":    {`"settled":[]`, `"settled":{}`},
		"fate":              {`"fate":"queued"`, `"fate":"lost"`},
		"queue":             {`"next-step":[]`, `"next-step":null`},
		"message":           {`{"id":"r","source"`, `{"id":"","source"`},
	} {
		bad := strings.Replace(good, swap[0], swap[1], 1)
		if bad == good {
			t.Fatalf("%s: nothing to swap in %s", name, good)
		}
		v, err := value.ParseString(bad)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseSet(h, v); !errors.Is(err, ErrState) {
			t.Errorf("%s: got %v, want ErrState", name, err)
		}
	}
}

func BenchmarkFoldOpenAndSettle(b *testing.B) {
	for _, open := range []int{10, 10_000} {
		b.Run(fmt.Sprint("beside ", open), func(b *testing.B) {
			l := new(log).timed()
			for i := range open {
				l.ask(fmt.Sprint("old", i))
			}
			s := NewUserQuestions(event.Header{ID: "s"})
			for _, e := range l.events {
				s.Apply(e)
			}
			pair := new(log).ask("c").result("c", `{"answers":[{"id":"db","selected":["A"]}]}`, "").events
			b.ReportAllocs()
			for b.Loop() {
				s.Apply(pair[0])
				s.Apply(pair[1])
			}
		})
	}
}
