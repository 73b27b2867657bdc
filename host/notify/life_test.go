package notify

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"meanwhile/host/question"
	"meanwhile/host/session"
)

// book keeps what a target was told, as "kind call".
type book struct {
	mu   sync.Mutex
	told []string
	down atomic.Bool
}

func (w *world) book(id string) *book {
	b := &book{}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.add(id, "", Status{ID: id, Kind: "webhook"}, func(_ context.Context, n Note) error {
		if b.down.Load() {
			return errors.New("down")
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.told = append(b.told, string(n.Kind)+" "+n.CallID)
		return nil
	}, nil)
	return b
}

func (b *book) want(t *testing.T, what string, want ...string) {
	t.Helper()
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if diff := cmp.Diff(want, b.told); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
	b.told = nil
}

// Faults row 20: one notification for each ask, withdrawn when it settles.
func TestLifeOfAnAsk(t *testing.T) {
	timedOut := question.Settlement{Kind: question.Rejected, Code: question.CodeTimedOut}
	for _, tc := range []struct {
		name   string
		window time.Duration
		play   func(t *testing.T, w *world, b *book, settle func(question.Settlement))
	}{
		{name: "answered before anybody is told", window: time.Minute * 10, play: func(t *testing.T, w *world, b *book, settle func(question.Settlement)) {
			time.Sleep(DefaultDelay - 1)
			settle(question.Settlement{Kind: question.Result})
			time.Sleep(time.Hour)
			b.want(t, "nothing")
		}},
		{name: "told, reminded, answered", window: time.Minute * 10, play: func(t *testing.T, w *world, b *book, settle func(question.Settlement)) {
			time.Sleep(DefaultDelay)
			b.want(t, "after the delay", "arrived c")
			time.Sleep(8*time.Minute - DefaultDelay - time.Second*3)
			b.want(t, "before a fifth is left")
			time.Sleep(5 * time.Second)
			b.want(t, "a fifth is left", "reminder c")
			settle(question.Settlement{Kind: question.Result})
			time.Sleep(time.Hour)
			b.want(t, "the end", "settled c")
		}},
		{name: "a short window has no reminder", window: 40 * time.Second, play: func(t *testing.T, w *world, b *book, settle func(question.Settlement)) {
			time.Sleep(39 * time.Second)
			b.want(t, "once", "arrived c")
		}},
		{name: "carried on, answered late", window: 2 * time.Minute, play: func(t *testing.T, w *world, b *book, settle func(question.Settlement)) {
			time.Sleep(2 * time.Minute)
			b.want(t, "in time", "arrived c", "reminder c")
			settle(timedOut)
			b.want(t, "carried on", "continued c")
			w.list.items <- session.ListItem{Upsert: []session.Row{row("c")}}
			b.want(t, "still listed")
			late := row("c")
			late.Queued = []session.Queued{{ID: "m", CallID: "c"}}
			w.list.items <- session.ListItem{Upsert: []session.Row{late}}
			b.want(t, "a reply is queued", "settled c")
			w.list.items <- session.ListItem{Upsert: []session.Row{row()}}
			b.want(t, "told once")
		}},
		{name: "a sub-call is listed only after it carried on", window: 2 * time.Minute, play: func(t *testing.T, w *world, b *book, settle func(question.Settlement)) {
			time.Sleep(2 * time.Minute)
			settle(timedOut)
			w.list.items <- session.ListItem{Upsert: []session.Row{row()}}
			b.want(t, "not listed yet", "arrived c", "reminder c", "continued c")
			w.list.items <- session.ListItem{Upsert: []session.Row{row("c")}}
			w.list.items <- session.ListItem{Upsert: []session.Row{row()}}
			b.want(t, "listed and gone", "settled c")
		}},
		{name: "its session is deleted", window: 2 * time.Minute, play: func(t *testing.T, w *world, b *book, settle func(question.Settlement)) {
			time.Sleep(time.Minute)
			w.list.items <- session.ListItem{Removed: []string{"s1"}}
			settle(question.Settlement{Kind: question.Cancelled, Code: question.CodeAborted})
			b.want(t, "deleted", "arrived c", "settled c")
		}},
		{name: "everybody delegated it", window: 2 * time.Minute, play: func(t *testing.T, w *world, b *book, settle func(question.Settlement)) {
			settle(question.Settlement{Kind: question.Unhandled})
			time.Sleep(time.Minute)
			b.want(t, "it goes out again", "arrived c")
		}},
		{name: "a blocking ask nobody can take", play: func(t *testing.T, w *world, b *book, settle func(question.Settlement)) {
			settle(question.Settlement{Kind: question.Unhandled})
			time.Sleep(time.Hour)
			b.want(t, "it failed at once")
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, Options{Delay: DefaultDelay}, nil)
				defer w.Close()
				b := w.book("one")
				tc.play(t, w, b, w.ask("c", oneChoice, tc.window))
			})
		})
	}
}

// Faults row 30: a question that is there after a restart is not news. It is
// taken back when it ends, and asked again it is not announced again.
func TestRestartIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		values := newMemory()
		w := newWorld(t, Options{}, values)
		b := w.book("one")
		for _, call := range []string{"kept", "gone", "again"} {
			w.ask(call, oneChoice, 0)
			time.Sleep(time.Second)
		}
		b.want(t, "at first", "arrived kept", "arrived gone", "arrived again")
		w.Close()

		w = newWorld(t, Options{}, values)
		b = w.book("one")
		time.Sleep(26 * 24 * time.Hour)
		w.list.items <- session.ListItem{Sessions: []session.Row{row("kept", "again", "older")}}
		b.want(t, "the list of a restart", "settled gone")
		settle := w.ask("again", oneChoice, 0)
		time.Sleep(time.Hour)
		b.want(t, "asked again")
		settle(question.Settlement{Kind: question.Result})
		b.want(t, "answered", "settled again")
		w.list.items <- session.ListItem{Sessions: []session.Row{}}
		b.want(t, "its session is gone", "settled kept")
		w.Close()
		if n := values.count(announcedKind); n != 0 {
			t.Errorf("%d asks are kept that are over", n)
		}
	})
}

func TestNewestNoteWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{Retry: time.Minute}, nil)
		defer w.Close()
		b := w.book("one")
		b.down.Store(true)
		first := w.ask("c1", oneChoice, 0)
		time.Sleep(time.Second)
		second := w.ask("c2", oneChoice, 5*time.Minute)
		time.Sleep(time.Second)
		w.ask("c3", oneChoice, 0)
		time.Sleep(time.Second)
		second(question.Settlement{Kind: question.Result}) // nobody was told of it
		b.down.Store(false)
		time.Sleep(time.Hour)
		b.want(t, "after the failure", "arrived c1", "arrived c3")
		first(question.Settlement{Kind: question.Result})
		b.want(t, "its end", "settled c1")
	})
}

func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{Retry: time.Hour}, nil)
		defer w.Close()
		b := w.book("one")
		b.down.Store(true)
		for i := range queueMax + 10 {
			w.ask(strconv.Itoa(i), oneChoice, 0)
		}
		time.Sleep(time.Second)
		st := w.Report().Targets[0]
		if st.Queued != queueMax || st.Failed != 10 {
			t.Errorf("queued %d and failed %d, want %d and 10", st.Queued, st.Failed, queueMax)
		}
	})
}

// Each ask is followed on its own: 10,000 of them, and no more.
func TestTrackedIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{Delay: time.Hour}, nil)
		defer w.Close()
		for i := range trackedMax + 5 {
			w.ask(fmt.Sprint(i), oneChoice, 0)
		}
		if r := w.Report(); r.Dropped != 5 {
			t.Errorf("dropped %d, want 5", r.Dropped)
		}
	})
}

func TestHead(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{name: "short", text: "Deploy now?", want: "Deploy now?"},
		{name: "long", text: "0123456789abcdef", want: "0123456789ab…"},
		{name: "several lines", text: "  one\n\ttwo ", want: "one two"},
		{name: "invisible", text: "a\u202eb\x1b[31m", want: "ab[31m"},
		{name: "not Latin", text: "把会话存到哪里？把会话存到哪里？", want: "把会话存到哪里？把会话存…"},
	} {
		if got := head(tc.text, 12); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}
