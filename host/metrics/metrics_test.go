package metrics

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"meanwhile/host/question"
	"meanwhile/host/session"
	"meanwhile/shared/event"
)

func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	body, err := io.ReadAll(w.Body)
	if err != nil || w.Code != http.StatusOK {
		t.Fatalf("status %d, %v", w.Code, err)
	}
	return string(body)
}

func wants(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains("\n"+text, "\n"+line+"\n") {
			t.Errorf("no line %q", line)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

func reply1(id string) event.Message {
	return event.Message{ID: id, Source: event.Source{Kind: event.SourceReply, CallID: "c", Outcome: event.OutcomeAnswered}, Text: `{"secret":"hush"}`}
}

func numbered(drafts ...event.Draft) (events []event.Event) {
	for i, d := range drafts {
		events = append(events, event.Event{Seq: int64(i), Type: d.Type, Data: d.Data})
	}
	return events
}

func splice(m event.Message) event.Draft {
	return event.Spliced{Target: event.NextStep, Inserted: []event.Message{m}}.Draft()
}

func sources() Sources {
	ask := func(state string) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(`{"callId":"c","questions":[{"id":"q","question":"hush"}],"state":%q}`, state))
	}
	return Sources{
		Questions: func() question.Stats { return question.Stats{Open: 7, Asked: 9, Replied: 2} },
		Rows: func() []session.Row {
			return []session.Row{
				{Title: "hush", Status: "running", Active: []json.RawMessage{ask("open"), ask("continued")}, Queued: []session.Queued{{ID: "m", Text: "hush"}}},
				{Status: "running", Active: []json.RawMessage{ask("continued")}}, {Status: "damaged"},
			}
		},
		Clients: func() int { return 3 },
		Ready:   func() error { return nil },
	}
}

func TestGaugesAskTheirOwners(t *testing.T) {
	from := sources()
	var sick error
	from.Ready = func() error { return sick }
	m := New(from)
	text := scrape(t, m)
	wants(t, text,
		"meanwhile_ready 1", "meanwhile_clients 3", `meanwhile_sessions{status="running"} 2`, `meanwhile_sessions{status="damaged"} 1`,
		"meanwhile_asks_open 7", "meanwhile_asks_continued 2", "meanwhile_messages_queued 1", "meanwhile_asks_total 9",
		"meanwhile_replies_accepted_total 2", "meanwhile_replies_admitted_total 0", `meanwhile_ask_seconds_count{outcome="answered"} 0`)
	if strings.Contains(text, "hush") {
		t.Error("a text is among the numbers")
	}
	sick = errors.New("module broke")
	wants(t, scrape(t, m), "meanwhile_ready 0")
}

func TestLatencies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(sources())
		m.Settled(question.Outcome{Status: question.Answered}, 3*time.Second)
		m.Settled(question.Outcome{Status: question.Unanswered}, 2*time.Minute)
		m.Settled(question.Outcome{Status: question.Failed}, time.Second)
		m.Synced(3*time.Millisecond, 5, 1000)

		m.Landed("s", numbered(splice(reply1("r1")), splice(event.Message{ID: "m", Source: event.Source{Kind: event.SourceUser}, Text: "says " + event.SourceReply})))
		time.Sleep(30 * time.Second)
		m.Landed("s", numbered(reply1("r1").Draft()))
		// Accepted by an earlier host: counted, though nobody knows since when.
		m.Landed("s", numbered(reply1("r0").Draft()))
		// Another session's message of the same id is another message.
		m.Landed("other", numbered(splice(reply1("r2"))))
		m.Landed("s", numbered(reply1("r2").Draft(), event.Message{ID: "u", Source: event.Source{Kind: event.SourceUser}, Text: event.SourceReply}.Draft()))
		wants(t, scrape(t, m),
			`meanwhile_ask_seconds_sum{outcome="answered"} 3`, `meanwhile_ask_seconds_count{outcome="pending"} 1`, `meanwhile_ask_seconds_count{outcome="failed"} 1`,
			"meanwhile_sync_seconds_count 1", "meanwhile_sync_batches_sum 5", "meanwhile_sync_bytes_total 1000",
			"meanwhile_replies_admitted_total 3", "meanwhile_admission_seconds_count 1", "meanwhile_admission_seconds_sum 30")
	})
}

// Replies that are discarded leave nothing behind for ever.
func TestRepliesUnderWayAreBounded(t *testing.T) {
	m := New(sources())
	for i := range underWayMax + 10 {
		m.Landed("s", numbered(splice(reply1(fmt.Sprint("r", i)))))
	}
	if n := len(m.underWay); n > underWayMax {
		t.Errorf("%d replies are remembered, more than %d", n, underWayMax)
	}
}
