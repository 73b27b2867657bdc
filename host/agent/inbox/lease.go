package inbox

import (
	"time"

	"meanwhile/shared/event"
	"meanwhile/shared/projection"
)

// Leases says which waiting messages an outside agent holds. The zero value
// holds none. A lease that has ended is as good as none; it is dropped when its
// message is next looked at or Sweep runs.
type Leases struct{ held map[string]lease }

type lease struct {
	holder string
	until  time.Time
}

// Held reports whether a message is held by anyone.
func (l *Leases) Held(messageID string, now time.Time) bool {
	h, ok := l.held[messageID]
	if ok && !now.Before(h.until) {
		delete(l.held, messageID)
		return false
	}
	return ok
}

// Claim leases to holder the first max waiting messages that nobody else holds,
// next-step before next-turn, and returns them. A named holder gets again what
// it holds already; without a name every claim is another's.
func (l *Leases) Claim(b *projection.Inbox, holder string, max int, now, until time.Time) []event.Message {
	var out []event.Message
	for _, target := range []string{event.NextStep, event.NextTurn} {
		for _, m := range b.Queue(target) {
			if len(out) >= max {
				return out
			}
			if l.Held(m.ID, now) && (holder == "" || l.held[m.ID].holder != holder) {
				continue
			}
			if l.held == nil {
				l.held = map[string]lease{}
			}
			l.held[m.ID] = lease{holder, until}
			out = append(out, m)
		}
	}
	return out
}

// Take leases one message to holder, or again to the same one; false when
// another has it.
func (l *Leases) Take(messageID, holder string, now, until time.Time) bool {
	if l.Held(messageID, now) && l.held[messageID].holder != holder {
		return false
	}
	if l.held == nil {
		l.held = map[string]lease{}
	}
	l.held[messageID] = lease{holder, until}
	return true
}

// Renew moves the end of a holder's lease on one message; false when that
// holder has none.
func (l *Leases) Renew(messageID, holder string, now, until time.Time) bool {
	if !l.Held(messageID, now) || l.held[messageID].holder != holder {
		return false
	}
	l.held[messageID] = lease{holder, until}
	return true
}

// Release ends the leases on these messages.
func (l *Leases) Release(messageIDs ...string) {
	for _, id := range messageIDs {
		delete(l.held, id)
	}
}

// Leave ends every lease of a named holder.
func (l *Leases) Leave(holder string) {
	if holder == "" {
		return
	}
	for id, h := range l.held {
		if h.holder == holder {
			delete(l.held, id)
		}
	}
}

// Sweep drops the leases that ended and returns how many are left.
func (l *Leases) Sweep(now time.Time) int {
	for id := range l.held {
		l.Held(id, now)
	}
	return len(l.held)
}
