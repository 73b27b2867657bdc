package mcpserver

import (
	"slices"
	"time"
)

const (
	// trayMax bounds the messages kept; the oldest are left to the host, which
	// hands them over again.
	trayMax = 256
	// waitingFor is how long a claimed message may wait for a result to carry it:
	// less than the host's lease of 60 s, after which another may have it.
	waitingFor = 50 * time.Second
)

// place is where a message is; doc.go has the transitions.
type place uint8

const (
	waiting place = iota
	carried
	written
)

type item struct {
	message
	place place
	call  string // that carries it
	until time.Time
}

// tray is the pure state of what one agent was handed. Its owner locks.
type tray struct{ items []*item }

// put takes messages that were claimed now, and drops those it has.
func (t *tray) put(now time.Time, ms ...message) {
	for _, m := range ms {
		i := slices.IndexFunc(t.items, func(it *item) bool { return it.ID == m.ID })
		if i < 0 {
			t.items = append(t.items, &item{message: m, until: now.Add(waitingFor)})
		} else if t.items[i].place != carried {
			// The host hands it over again: whoever had it let the lease pass.
			t.items[i].place, t.items[i].call, t.items[i].until = waiting, "", now.Add(waitingFor)
		}
	}
	if n := len(t.items) - trayMax; n > 0 {
		t.items = slices.Delete(t.items, 0, n)
	}
}

// load puts everything that waits onto the result of a call. What waited past
// its lease is forgotten.
func (t *tray) load(now time.Time, call string) (ms []message) {
	t.items = slices.DeleteFunc(t.items, func(it *item) bool { return it.place == waiting && !now.Before(it.until) })
	for _, it := range t.items {
		if it.place == waiting {
			it.place, it.call = carried, call
			ms = append(ms, it.message)
		}
	}
	return ms
}

// wrote notes that the result of a call went out whole.
func (t *tray) wrote(call string) { t.move(call, written, call) }

// back takes from a result what it did not bring to the client.
func (t *tray) back(call string) { t.move(call, waiting, "") }

func (t *tray) move(call string, to place, next string) {
	for _, it := range t.items {
		if it.place != waiting && it.call == call {
			it.place, it.call = to, next
		}
	}
}

// due lists what the client acknowledges by calling again.
func (t *tray) due() (ids []string) {
	for _, it := range t.items {
		if it.place == written {
			ids = append(ids, it.ID)
		}
	}
	return ids
}

// drop forgets acknowledged messages and returns the asks that they settled.
func (t *tray) drop(ids []string) (callIDs []string) {
	t.items = slices.DeleteFunc(t.items, func(it *item) bool {
		done := slices.Contains(ids, it.ID)
		if done {
			callIDs = append(callIDs, it.CallID)
		}
		return done
	})
	return callIDs
}

// answerTo finds the answer to an ask among what was handed over.
func (t *tray) answerTo(callID string) (message, bool) {
	for _, it := range t.items {
		if it.CallID == callID && it.Answers != nil {
			return it.message, true
		}
	}
	return message{}, false
}
