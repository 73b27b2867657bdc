package inbox

import (
	"errors"
	"fmt"

	"meanwhile/shared/event"
	"meanwhile/shared/projection"
)

// Limits.
const (
	QueueMax   = 1000    // messages waiting in both queues of a session
	MessageMax = 3 << 20 // encoded bytes of one message
	AdmitMax   = 3 << 20 // encoded bytes of the messages of one admission
	IDMax      = 200     // bytes of a message id
)

// What Insert refuses.
var (
	ErrPending  = errors.New("a message with this id waits already: send another under a new id")
	ErrFull     = fmt.Errorf("the inbox holds %d messages that the agent has not read: remove some or wait", QueueMax)
	ErrTooLarge = fmt.Errorf("the message is over %d bytes: send less text", MessageMax)
	ErrID       = fmt.Errorf("message id: must have 1 to %d bytes", IDMax)
)

// ErrLeased is returned for a message that an outside agent was handed.
var ErrLeased = errors.New("the agent was just handed this message: it can no longer be removed")

// Free reports whether a message may be taken out. Nil means that every one may.
type Free func(messageID string) bool

// Check refuses a message that no inbox takes.
func Check(m event.Message) error {
	switch {
	case m.ID == "" || len(m.ID) > IDMax:
		return ErrID
	case len(m.Bytes()) > MessageMax:
		return fmt.Errorf("message %s: %w", m.ID, ErrTooLarge)
	}
	return nil
}

// Insert puts a message at the end of a queue.
func Insert(b *projection.Inbox, target string, m event.Message) (event.Draft, error) {
	if err := Check(m); err != nil {
		return event.Draft{}, err
	}
	switch {
	case b.Has(m.ID):
		return event.Draft{}, fmt.Errorf("message %s: %w", m.ID, ErrPending)
	case b.Len() >= QueueMax:
		return event.Draft{}, ErrFull
	}
	return event.Spliced{Target: target, Start: int64(len(b.Queue(target))), Inserted: []event.Message{m}}.Draft(), nil
}

// Remove takes one message out unread. No drafts and no error: no such message
// waits.
func Remove(b *projection.Inbox, messageID string, free Free) ([]event.Draft, error) {
	target, i, ok := b.Find(messageID)
	if !ok {
		return nil, nil
	}
	if free != nil && !free(messageID) {
		return nil, fmt.Errorf("message %s: %w", messageID, ErrLeased)
	}
	return []event.Draft{event.Spliced{Target: target, Start: int64(i), RemovedCount: 1, Outcome: event.OutcomeCanceled}.Draft()}, nil
}

// AdmitStep admits what a step boundary takes: every next-step message.
func AdmitStep(b *projection.Inbox, free Free) []event.Draft {
	return admit(b, pick(b, event.NextStep, free, QueueMax))
}

// AdmitTurn admits what opens a turn: every next-step message, then one
// next-turn message.
func AdmitTurn(b *projection.Inbox, free Free) []event.Draft {
	return admit(b, append(pick(b, event.NextStep, free, QueueMax), pick(b, event.NextTurn, free, 1)...))
}

// Admit admits the named messages that wait, in queue order, and returns the
// ids of those it took.
func Admit(b *projection.Inbox, messageIDs []string) ([]event.Draft, []string) {
	named := make(map[string]bool, len(messageIDs))
	for _, id := range messageIDs {
		named[id] = true
	}
	only := func(id string) bool { return named[id] }
	taken := fit(append(pick(b, event.NextStep, only, QueueMax), pick(b, event.NextTurn, only, QueueMax)...))
	ids := make([]string, len(taken))
	for i, p := range taken {
		ids[i] = p.message.ID
	}
	return admit(b, taken), ids
}

// place is one message and where it waits.
type place struct {
	target  string
	index   int
	message event.Message
}

func pick(b *projection.Inbox, target string, free Free, limit int) []place {
	var out []place
	for i, m := range b.Queue(target) {
		if len(out) == limit {
			break
		}
		if free == nil || free(m.ID) {
			out = append(out, place{target, i, m})
		}
	}
	return out
}

// fit is the longest beginning of places that one batch may hold.
func fit(places []place) []place {
	size := 0
	for i, p := range places {
		if size += len(p.message.Bytes()); size > AdmitMax && i > 0 {
			return places[:i]
		}
	}
	return places
}

// admit takes the places out of their queues and records their messages. The
// splices go from the back, so that none moves what a later one names.
func admit(b *projection.Inbox, places []place) []event.Draft {
	places = fit(places)
	var out []event.Draft
	for end := len(places); end > 0; {
		from := end - 1
		for from > 0 && places[from-1].target == places[from].target && places[from-1].index == places[from].index-1 {
			from--
		}
		out = append(out, event.Spliced{Target: places[from].target, Start: int64(places[from].index),
			RemovedCount: int64(end - from)}.Draft())
		end = from
	}
	for _, p := range places {
		out = append(out, p.message.Draft())
	}
	return out
}
