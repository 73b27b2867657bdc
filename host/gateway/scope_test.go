package gateway

import (
	"encoding/json"
	"strings"
	"testing"
)

// remote/settle asks for the event's own scope, whatever its route asks for.
func TestSettleNeedsTheEventsScope(t *testing.T) {
	g := sample(Config{NewID: func() string { return "e" }})
	defer g.Close()
	var got []Outcome
	g.Emit(Event{Name: "ask", Scope: "answer", Params: json.RawMessage("{}"), Settled: func(o Outcome) { got = append(got, o) }})
	body := []byte(`{"jsonrpc":"2.0","id":1,"method":"remote/settle","params":{"eventId":"e","result":{"x":1}}}`)
	for _, scopes := range []string{"read", "ask", "admin"} {
		_, response, _ := g.Post(t.Context(), tokenOf(scopes), body)
		if !strings.Contains(string(response), CodeMissingScope) || len(got) > 0 {
			t.Errorf("%s: got %s, outcomes %v; want %s", scopes, response, got, CodeMissingScope)
		}
	}
	_, response, _ := g.Post(t.Context(), tokenOf("answer"), body)
	if !strings.Contains(string(response), `"taken":true`) || len(got) != 1 {
		t.Errorf("answer: got %s, outcomes %v; want it taken", response, got)
	}
}
