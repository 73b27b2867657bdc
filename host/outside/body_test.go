package outside

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"meanwhile/shared/event"
)

func TestBodyOf(t *testing.T) {
	text := func(questions, answers int) string {
		b, err := json.Marshal(map[string]any{"callId": "c", "questions": strings.Repeat(`"`, questions), "answers": strings.Repeat(`"`, answers)})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, tc := range []struct {
		name, text   string
		has, without string
	}{
		{"small", text(3, 3), "questions", "message"},
		{"long questions", text(260<<10, 10), "answers", "questions"},
		{"long answers", text(10, 300<<10), tooLong, "questions"},
		{"all long", text(260<<10, 300<<10), tooLong, "questions"},
		{"a prompt", strings.Repeat("x", 100), "xxx", "message"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := event.Message{ID: "m", Source: event.Source{Kind: event.SourceReply, CallID: "c", Outcome: event.OutcomeAnswered}, Text: tc.text}
			body := string(bodyOf(m))
			if len(body) > bodyMax || !json.Valid([]byte(body)) {
				t.Fatalf("%d bytes: %.200s", len(body), body)
			}
			if !strings.Contains(body, tc.has) || strings.Contains(body, tc.without) {
				t.Errorf("want %q and no %q: %.300s", tc.has, tc.without, body)
			}
			if short := tc.name == "small" || tc.name == "a prompt"; short != (body == string(m.Bytes())) {
				t.Errorf("as it was: %v, want %v", !short, short)
			}
		})
	}
}

// A reply that no response has room for is handed over all the same.
func TestClaimLongReply(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		ctx := context.Background()
		long := strings.Repeat(`\"`, 9990)
		var qs []string
		for _, id := range strings.Split("abcdefghijklmnop", "") {
			qs = append(qs, `{"id":"`+id+`","question":"`+long+`"}`)
		}
		st, err := r.svc.Ask(ctx, me, r.id, Asking{Questions: []byte("[" + strings.Join(qs, ",") + "]"), Timeout: []byte("1")}, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		var as []string
		for _, id := range strings.Split("abcdefghijklmnop", "") {
			as = append(as, `{"id":"`+id+`","selected":[],"custom":"`+strings.Repeat(`\"`, 14000)+`"}`)
		}
		a := r.live()
		if _, err := r.q.Answer(ctx, a, st.CallID, []byte(`{"answers":[`+strings.Join(as, ",")+`]}`), "s1", "Phone"); err != nil {
			t.Fatal(err)
		}
		got, _, err := r.svc.Claim(ctx, me, r.id, 0)
		if err != nil || len(got) != 1 || got[0].ID != "s1" || len(got[0].Body) > bodyMax {
			t.Fatalf("got %d messages, %v, %d bytes of %d", len(got), err, len(got[0].Body), bodyMax)
		}
	})
}
