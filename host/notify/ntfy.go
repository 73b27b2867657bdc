package notify

import (
	"context"
	"errors"
	"mime"
	"net/http"
)

// ntfy publishes to a topic. A server from 2.16 on replaces what has the same
// sequence id and takes it back on DELETE; an older one shows each note.
type ntfy struct {
	post  *poster
	topic string // the whole URL
	token string // "" = none
}

func (t *ntfy) send(ctx context.Context, n Note) error {
	h := http.Header{"User-Agent": {"Meanwhile"}}
	if t.token != "" {
		h.Set("Authorization", "Bearer "+t.token)
	}
	if n.Kind == Settled {
		err := t.post.do(ctx, message{method: http.MethodDelete, url: t.topic + "/" + n.Tag, header: h, trusted: true}, "Authorization")
		var e *sendError
		if errors.As(err, &e) && e.final {
			return nil // an older server cannot; what it showed leads to the record
		}
		return err
	}
	// Priorities of ntfy: 5 breaks through, 4 is high, 3 the default, 2 makes no sound.
	priority, tag := "3", "question"
	switch {
	case n.Kind == Continued:
		priority, tag = "2", "fast_forward"
	case n.Kind == Reminder:
		priority, tag = "4", "hourglass_flowing_sand"
	}
	h.Set("Title", mime.BEncoding.Encode("utf-8", n.Title()))
	h.Set("Priority", priority)
	h.Set("Tags", tag)
	h.Set("Click", n.Link)
	h.Set("X-Sequence-ID", n.Tag)
	err := t.post.do(ctx, message{method: http.MethodPost, url: t.topic, header: h, body: []byte(n.Body()), trusted: true}, "Authorization")
	var e *sendError
	if errors.As(err, &e) {
		e.gone = false // a topic comes and goes with its server's settings
	}
	return err
}
