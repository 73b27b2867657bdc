package gateway

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOrderOfWhatIsWritten drives the state alone, without connections.
func TestOrderOfWhatIsWritten(t *testing.T) {
	s := newState()
	event := func(id string) *Pending {
		return &Pending{id: id, ev: Event{Name: "ask", Scope: "answer", Params: json.RawMessage(`{}`)}}
	}
	c := &client{no: 1, stage: ready, caller: Caller{Scopes: Scopes{"answer"}}}
	first, second, hidden := event("first"), event("second"), event("hidden")
	hidden.ev.Scope = "admin"
	for _, p := range []*Pending{first, hidden, second} {
		s.append(p)
	}
	c.next, c.syncAt = s.head, s.lastSeq
	s.clients = append(s.clients, c)

	var got []string
	take := func() {
		out, ok := s.nextFor(c)
		switch {
		case !ok:
			got = append(got, "nothing")
		case out.sync:
			got = append(got, "synced "+strings.Join(out.ids, " "))
		case out.settled.settlement != nil:
			got = append(got, "settled "+out.settled.eventID)
		case out.refused != nil:
			got = append(got, "refused "+out.p.id)
		default:
			got = append(got, out.p.id)
		}
	}
	take()
	// What is emitted now does not keep the client from being synced.
	third := event("third")
	s.append(third)
	take()
	take()
	// Settlements come before refusals, and both before deliveries; a refused
	// delivery whose event is over is not repeated.
	c.settled = append(c.settled, settledFor{settlement: &settlement{eventID: "gone"}})
	over := event("over")
	over.phase = ended
	c.again = []again{{p: over, refused: &Refusal{}}, {p: first, refused: &Refusal{}}}
	for range 4 {
		take()
	}
	want := []string{"first", "second", "synced first second", "settled gone", "refused first", "third", "nothing"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	c.stage = gone
	s.append(event("fourth"))
	if _, ok := s.nextFor(c); ok {
		t.Error("a client that is gone was given something")
	}
}

func TestRemoveMovesEveryPlace(t *testing.T) {
	for _, test := range []struct {
		remove string
		want   string // what a client that stood at b gets
	}{
		{remove: "a", want: "b c"},
		{remove: "b", want: "c"},
		{remove: "c", want: "b"},
		{remove: "a b c", want: ""},
		{remove: "c b", want: ""},
	} {
		t.Run(test.remove, func(t *testing.T) {
			s := newState()
			c := &client{no: 1, stage: ready, synced: true}
			s.clients = append(s.clients, c)
			byName := map[string]*Pending{}
			for _, name := range []string{"a", "b", "c"} {
				byName[name] = &Pending{id: name}
				s.append(byName[name])
			}
			if out, ok := s.nextFor(c); !ok || out.p.id != "a" {
				t.Fatalf("got %v first", out)
			}
			for _, name := range strings.Fields(test.remove) {
				s.remove(byName[name])
			}
			var got []string
			for out, ok := s.nextFor(c); ok; out, ok = s.nextFor(c) {
				got = append(got, out.p.id)
			}
			if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			var list []string
			for p := s.head; p != nil; p = p.next {
				list = append(list, p.id)
			}
			if len(list) != len(s.byID) || (s.head == nil) != (s.tail == nil) {
				t.Errorf("list %v, index of %d, tail %v", list, len(s.byID), s.tail)
			}
			// The list still takes events after any removal.
			s.append(&Pending{id: "d"})
			if out, ok := s.nextFor(c); !ok || out.p.id != "d" {
				t.Errorf("got %v, want d", out)
			}
		})
	}
}
