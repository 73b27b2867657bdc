package session_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"meanwhile/host/session"
	"meanwhile/host/session/sessiontest"
	"meanwhile/shared/event"
)

func TestCheckCountsAndFindsFaults(t *testing.T) {
	disk := sessiontest.NewMem()
	s := sessiontest.OpenOn(t, disk)
	asking := sessiontest.Create(t, s, func(h *event.Header) { h.ID, h.Title = "asking", "Asking" })
	sessiontest.Append(t, asking, event.TurnStart{Turn: 1}.Draft(), event.Step{Turn: 1, Step: 1}.StartDraft(), timedHeader(),
		ask(1, 1, "late"), ask(1, 1, "open"))
	sessiontest.Append(t, asking, result(1, 1, "late", `{"pending":true,"callId":"late","message":"later"}`))
	sessiontest.Append(t, asking, splice(event.NextTurn, 0, 0, msg("m", "hello")))
	for _, id := range []string{"cut", "listed", "open"} {
		l := sessiontest.Create(t, s, func(h *event.Header) { h.ID = id })
		sessiontest.Append(t, l, turn(1)...)
	}
	if row, ok := s.Row("asking"); !ok || row.Continued() != 1 || len(row.Active) != 2 {
		t.Errorf("row %+v: want one of two asks continued", row)
	}
	disk = disk.Crash()
	disk.Corrupt("cut", 2, func(b []byte) []byte { return []byte(`{"seq":2`) })
	disk.CorruptRecord("listed", func(r *session.Record) {
		r.Pending = []byte(`{"active":[],"queued":[{"id":"x","target":"next-turn"}]}`)
	})
	disk.CorruptRecord("open", func(r *session.Record) {
		r.Summary = []byte(strings.Replace(string(r.Summary), `"open":false`, `"open":true`, 1))
	})

	got := map[string]session.Finding{}
	faults := map[string]string{}
	if err := session.Check(disk, func(f session.Finding) error {
		if f.Fault != nil {
			faults[f.ID] = f.Fault.Reason
			f.Fault = nil
		}
		got[f.ID] = f
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	want := map[string]session.Finding{
		"asking": {ID: "asking", Title: "Asking", Events: 7, TurnOpen: true, Open: 1, Continued: 1, Queued: 1},
		"cut":    {ID: "cut", Events: 2, TurnOpen: true},
		"listed": {ID: "listed", Events: 4},
		"open":   {ID: "open", Events: 4},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	for id, part := range map[string]string{"cut": "", "listed": "other questions or messages", "open": "open turn"} {
		if reason, ok := faults[id]; !ok || !strings.Contains(reason, part) {
			t.Errorf("%s: fault %q, want one about %q", id, reason, part)
		}
		delete(faults, id)
	}
	if len(faults) > 0 {
		t.Errorf("faults in sound logs: %v", faults)
	}
}

func TestLandedIsToldAfterTheDisk(t *testing.T) {
	disk := sessiontest.NewMem()
	var told []string
	s, err := session.Open(disk, session.Options{Fatal: func(err error) { t.Error(err) }, Landed: func(id string, events []event.Event) {
		told = append(told, id+" "+strings.Join(sessiontest.Types(events), " "))
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l := sessiontest.Create(t, s, func(h *event.Header) { h.ID = "s" })
	disk.Hold()
	c, err := l.Update(func(*session.State) ([]event.Draft, error) { return []event.Draft{user("m", "hi")}, nil })
	if err != nil {
		t.Fatal(err)
	}
	if len(told) > 0 {
		t.Errorf("told %q of what is not on disk", told)
	}
	disk.Release()
	if err := c.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"s user/message"}, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}
