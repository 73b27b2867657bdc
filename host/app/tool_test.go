package app_test

import (
	"encoding/json"
	"strings"
	"testing"

	"meanwhile/host/internal/hosttest"
)

// A program writes a file, reads it again beside a page that is refused, and asks.
const programScript = `{"name":"program","rules":[
	{"when":{"tool":"run_code"},"do":[{"text":"program: {{output}}"}]},
	{"when":{"reply":true},"do":[{"text":"late: {{answers}}"}]},
	{"when":{"last":"user"},"do":[{"call":"run_code","arguments":{"code":"await tools.write_file({path: 'notes/a.txt', content: 'one two'}); await tools.edit_file({path: 'notes/a.txt', old: 'two', new: 'three'}); const [file, page] = await Promise.all([tools.read_file({path: 'notes/a.txt'}), tools.web_fetch({url: 'http://127.0.0.1/'}).catch(e => e.code)]); const ask = JSON.parse(await tools.ask_user_question({timeout: 1, questions: [{id: 'store', question: 'Which store?', options: [{label: 'SQLite'}, {label: 'Postgres'}]}]})); return [file.trim(), page, ask.pending].join('|')"}}]}
	]}`

// The tools of a whole host, through a program; its ask outlives both the
// program and the host, and is answered late.
func TestProgramOfAnAgent(t *testing.T) {
	h := hosttest.Start(t, hosttest.Options{Script: programScript})
	desk := person(h, "desk")
	session := begin(desk)
	ask := desk.Next()
	events := says(t, desk, session, "program: ")
	if last := string(events[len(events)-1].Data); !strings.Contains(last, `one three|WEB_FETCH_REFUSED|true`) {
		t.Errorf("the program returned %s", last)
	}
	var calls []string
	for _, e := range events {
		if e.Type != "tool/ptc-dispatch" {
			continue
		}
		var d struct{ SubCallID, Name string }
		if err := json.Unmarshal(e.Data, &d); err != nil {
			t.Fatal(err)
		}
		calls = append(calls, d.Name)
		if d.Name == "ask_user_question" && d.SubCallID != ask.Request.Wait.CallID {
			t.Errorf("the ask is %s on the wire and %s in the log", ask.Request.Wait.CallID, d.SubCallID)
		}
	}
	if got := strings.Join(calls, " "); got != "write_file edit_file read_file web_fetch ask_user_question" && got != "write_file edit_file web_fetch read_file ask_user_question" {
		t.Errorf("recorded calls: %s", got)
	}

	h.Restart()
	desk = person(h, "desk")
	var out struct{ Accepted bool }
	desk.Call("userQuestions/answer", obj{"sessionId": session, "callId": ask.Request.Wait.CallID, "submissionId": "press-1",
		"answer": obj{"answers": []obj{{"id": "store", "selected": []string{"SQLite"}}}}}, &out)
	if !out.Accepted {
		t.Fatal("the late answer was not accepted")
	}
	says(t, desk, session, "late: store: SQLite")
}
