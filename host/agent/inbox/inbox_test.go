package inbox

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"meanwhile/shared/event"
	"meanwhile/shared/projection"
)

// box is a queue fold that drafts are applied to, as a log would.
type box struct {
	*projection.Inbox
	t        *testing.T
	seq      int64
	admitted []string
}

func newBox(t *testing.T, step, turn string) *box {
	b := &box{Inbox: projection.NewInbox(event.Header{Version: 1, ID: "s"}), t: t}
	for target, ids := range map[string]string{event.NextStep: step, event.NextTurn: turn} {
		for _, id := range strings.Fields(ids) {
			d, err := Insert(b.Inbox, target, message(id))
			if err != nil {
				t.Fatal(err)
			}
			b.apply(d)
		}
	}
	return b
}

func message(id string) event.Message {
	return event.Message{ID: id, Source: event.Source{Kind: event.SourceUser}, Text: "text of " + id}
}

func (b *box) apply(drafts ...event.Draft) {
	b.t.Helper()
	for _, d := range drafts {
		if _, _, err := b.Apply(event.Event{Seq: b.seq, Type: d.Type, Data: d.Data}); err != nil {
			b.t.Fatal(err)
		}
		b.seq++
		if d.Type == event.TypeUserMessage {
			m, err := event.DecodeUserMessage(d.Data)
			if err != nil {
				b.t.Fatal(err)
			}
			b.admitted = append(b.admitted, m.ID)
		}
	}
}

// state is "next-step | next-turn -> admitted".
func (b *box) state() string {
	ids := func(target string) string {
		var out []string
		for _, m := range b.Queue(target) {
			out = append(out, m.ID)
		}
		return strings.Join(out, " ")
	}
	return fmt.Sprintf("%s | %s -> %s", ids(event.NextStep), ids(event.NextTurn), strings.Join(b.admitted, " "))
}

func TestAdmission(t *testing.T) {
	not := func(held string) Free { return func(id string) bool { return !strings.Contains(held, id) } }
	for _, tc := range []struct {
		name       string
		step, turn string
		admit      func(*box) []event.Draft
		want       string
	}{
		{"a step takes every next-step message", "a b", "x", func(b *box) []event.Draft { return AdmitStep(b.Inbox, nil) }, " | x -> a b"},
		{"a turn takes them and one next-turn message", "a b", "x y", func(b *box) []event.Draft { return AdmitTurn(b.Inbox, nil) }, " | y -> a b x"},
		{"a turn of a prompt alone", "", "x y", func(b *box) []event.Draft { return AdmitTurn(b.Inbox, nil) }, " | y -> x"},
		{"nothing waits", "", "", func(b *box) []event.Draft { return AdmitTurn(b.Inbox, nil) }, " |  -> "},
		{"a held message stays in its place", "a b c d", "x", func(b *box) []event.Draft { return AdmitStep(b.Inbox, not("b")) }, "b | x -> a c d"},
		{"the first free next-turn message", "", "x y", func(b *box) []event.Draft { return AdmitTurn(b.Inbox, not("x")) }, " | x -> y"},
		{"named ones, in queue order", "a b c", "x y", func(b *box) []event.Draft {
			d, ids := Admit(b.Inbox, []string{"y", "c", "a", "gone"})
			if diff := cmp.Diff([]string{"a", "c", "y"}, ids); diff != "" {
				b.t.Errorf("Admit() ids (-want +got):\n%s", diff)
			}
			return d
		}, "b | x -> a c y"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBox(t, tc.step, tc.turn)
			b.apply(tc.admit(b)...)
			if got := b.state(); got != tc.want {
				t.Errorf("state = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestAdmissionFitsOneBatch(t *testing.T) {
	b := newBox(t, "", "")
	for i := range 4 {
		m := message(fmt.Sprint("m", i))
		m.Text = strings.Repeat("x", AdmitMax*2/5)
		d, err := Insert(b.Inbox, event.NextStep, m)
		if err != nil {
			t.Fatal(err)
		}
		b.apply(d)
	}
	b.apply(AdmitStep(b.Inbox, nil)...)
	if got, want := b.state(), "m2 m3 |  -> m0 m1"; got != want {
		t.Errorf("state = %q, want %q", got, want)
	}
}

func TestInsertRefuses(t *testing.T) {
	full := newBox(t, strings.Join(ids(QueueMax), " "), "")
	large := message("large")
	large.Text = strings.Repeat("x", MessageMax)
	for _, tc := range []struct {
		name string
		box  *box
		m    event.Message
		want error
	}{
		{"an id that waits", newBox(t, "a", ""), message("a"), ErrPending},
		{"an id that waits in the other queue", newBox(t, "", "a"), message("a"), ErrPending},
		{"no id", newBox(t, "", ""), message(""), ErrID},
		{"a long id", newBox(t, "", ""), message(strings.Repeat("i", IDMax+1)), ErrID},
		{"one too many", full, message("a"), ErrFull},
		{"too much text", newBox(t, "", ""), large, ErrTooLarge},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := Insert(tc.box.Inbox, event.NextStep, tc.m); !errors.Is(err, tc.want) {
				t.Errorf("Insert() error = %v, want %v", err, tc.want)
			}
		})
	}
}

func ids(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprint("m", i)
	}
	return out
}

func TestRemove(t *testing.T) {
	b := newBox(t, "a b", "x")
	drafts, err := Remove(b.Inbox, "b", nil)
	if err != nil || len(drafts) != 1 {
		t.Fatalf("Remove(b) = %d drafts, %v, want 1", len(drafts), err)
	}
	d, err := event.DecodeSpliced(drafts[0].Data)
	if err != nil || d.Outcome != event.OutcomeCanceled {
		t.Errorf("outcome = %q, %v, want canceled", d.Outcome, err)
	}
	b.apply(drafts...)
	if got, want := b.state(), "a | x -> "; got != want {
		t.Errorf("state = %q, want %q", got, want)
	}
	if drafts, err := Remove(b.Inbox, "b", nil); drafts != nil || err != nil {
		t.Errorf("Remove(b) again = %v, %v, want nothing", drafts, err)
	}
	if _, err := Remove(b.Inbox, "a", func(string) bool { return false }); !errors.Is(err, ErrLeased) {
		t.Errorf("Remove(held) error = %v, want %v", err, ErrLeased)
	}
}

func TestLeases(t *testing.T) {
	const term = time.Minute
	start := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	b := newBox(t, "a b", "x")
	var l Leases
	claim := func(holder string, max int, at time.Duration) string {
		var out []string
		now := start.Add(at)
		for _, m := range l.Claim(b.Inbox, holder, max, now, now.Add(term)) {
			out = append(out, m.ID)
		}
		return strings.Join(out, " ")
	}
	for _, tc := range []struct{ name, got, want string }{
		{"the first takes two", claim("one", 2, 0), "a b"},
		{"another gets what is left", claim("two", 9, 0), "x"},
		{"a holder gets its own again", claim("one", 9, time.Second), "a b"},
		{"nobody else does, until a tick before the end", claim("", 9, term-1), ""},
		{"at the end another does", claim("three", 9, term), "x"},
		{"and so for the rest", claim("", 1, term+time.Second), "a"},
		{"without a name every claim is another's", claim("", 1, term+2*time.Second), "b"},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: claimed %q, want %q", tc.name, tc.got, tc.want)
		}
	}
	now := start.Add(term + 3*time.Second)
	l.Leave("three")
	if l.Held("x", now) || !l.Held("a", now) {
		t.Error("Leave(three) did not end its lease alone")
	}
	l.Leave("")
	if !l.Held("a", now) {
		t.Error("Leave without a name ended leases of others")
	}
	l.Release("a")
	if got := l.Sweep(now); got != 1 {
		t.Errorf("Sweep() = %d, want 1", got)
	}
	if got := l.Sweep(now.Add(term)); got != 0 {
		t.Errorf("Sweep() after the end = %d, want 0", got)
	}
}

func TestRenew(t *testing.T) {
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	b := newBox(t, "a", "")
	var l Leases
	l.Claim(b.Inbox, "one", 1, now, now.Add(time.Second))
	if l.Renew("a", "two", now, now.Add(time.Hour)) {
		t.Error("Renew by another holder = true, want false")
	}
	if !l.Renew("a", "one", now, now.Add(time.Minute)) || !l.Held("a", now.Add(time.Minute-1)) {
		t.Error("Renew by the holder did not move the end")
	}
	if l.Renew("a", "one", now.Add(time.Minute), now.Add(time.Hour)) {
		t.Error("Renew after the end = true, want false")
	}
}

// Whatever is inserted, held, removed and admitted, a message leaves once.
func TestNothingIsLostOrDoubled(t *testing.T) {
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		b := newBox(t, "", "")
		fate := map[string]string{}
		n := 0
		for range 200 {
			free := Free(func(id string) bool { return (len(id)+n)%3 != 0 })
			switch rnd.IntN(5) {
			case 0, 1:
				n++
				m := message(fmt.Sprint("m", n))
				d, err := Insert(b.Inbox, []string{event.NextStep, event.NextTurn}[rnd.IntN(2)], m)
				if err != nil {
					t.Fatal(err)
				}
				fate[m.ID] = "queued"
				b.apply(d)
			case 2:
				id := fmt.Sprint("m", rnd.IntN(n+1))
				drafts, _ := Remove(b.Inbox, id, nil)
				if (drafts != nil) != (fate[id] == "queued") {
					t.Fatalf("seed %d: Remove(%s) = %d drafts of a message that is %s", seed, id, len(drafts), fate[id])
				}
				if drafts != nil {
					fate[id] = "removed"
				}
				b.apply(drafts...)
			default:
				before := len(b.admitted)
				if rnd.IntN(2) == 0 {
					b.apply(AdmitStep(b.Inbox, free)...)
				} else {
					b.apply(AdmitTurn(b.Inbox, free)...)
				}
				for _, id := range b.admitted[before:] {
					if fate[id] != "queued" || b.Has(id) {
						t.Fatalf("seed %d: admitted %s, which is %s, waiting %t", seed, id, fate[id], b.Has(id))
					}
					fate[id] = "admitted"
				}
			}
		}
		for id, f := range fate {
			if b.Has(id) != (f == "queued") {
				t.Fatalf("seed %d: %s is %s, waiting %t", seed, id, f, b.Has(id))
			}
		}
	}
}
