package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"meanwhile/host/auth"
	"meanwhile/host/session"
)

// errRevoked ends a stream whose token is gone.
var errRevoked = errors.New("the token was revoked")

func (v *visit) needRead() error {
	if !v.token.Scopes.Has(auth.Read) {
		return newProblem(http.StatusForbidden, "MISSING_SCOPE", "read", `this needs a token with scope "read"`)
	}
	return nil
}

func (v *visit) list() error {
	if err := v.needRead(); err != nil {
		return err
	}
	rows := v.o.Sessions.List()
	if rows == nil {
		rows = []session.Row{}
	}
	raw, err := json.Marshal(map[string]any{"sessions": rows})
	if err != nil {
		return err
	}
	v.send(raw)
	return nil
}

// follow streams a session's items as server-sent events.
func (v *visit) follow() error {
	if err := v.needRead(); err != nil {
		return err
	}
	after, err := v.after()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(v.r.Context())
	defer cancel(nil)
	s := &stream{w: v.w}
	var beat sync.WaitGroup
	defer beat.Wait()
	defer cancel(nil)
	beat.Go(func() {
		tick := time.NewTicker(keepAlive)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if !v.o.Live(v.token.ID) {
				cancel(errRevoked)
				return
			}
			if err := s.comment("keep-alive"); err != nil {
				cancel(err)
				return
			}
		}
	})
	err = v.o.Sessions.Follow(ctx, v.sessionID, after, s.item)
	switch {
	case err == nil, v.r.Context().Err() != nil:
		return nil
	case !s.begun:
		return wordsOf(err)
	}
	// The header is out: the reason goes as an event.
	raw, encErr := json.Marshal(wordsOf(err))
	if encErr == nil {
		_ = s.event("problem", "", raw) // the client may have left
	}
	return nil
}

// after is where to go on: behind the event that the client saw last.
func (v *visit) after() (*int64, error) {
	field, text := "Last-Event-ID", v.r.Header.Get("Last-Event-ID")
	if text == "" {
		field, text = "after", v.r.URL.Query().Get("after")
	}
	if text == "" {
		return nil, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < -1 {
		return nil, newProblem(http.StatusUnprocessableEntity, "BAD_BODY", field, field+" must be the id of an event")
	}
	return &n, nil
}

// wordsOf words the errors of following.
func wordsOf(err error) *problem {
	for _, known := range []struct {
		err    error
		status int
		code   string
		field  string
	}{
		{session.ErrNoSession, http.StatusNotFound, "NO_SESSION", "sessionId"},
		{session.ErrDamaged, http.StatusConflict, "SESSION_DAMAGED", "sessionId"},
		{session.ErrResync, http.StatusGone, "RESYNC", "Last-Event-ID"},
		{session.ErrLagged, http.StatusServiceUnavailable, "LAGGED", ""},
		{session.ErrClosed, http.StatusServiceUnavailable, "HOST_STOPPING", ""},
		{errRevoked, http.StatusUnauthorized, "BAD_TOKEN", ""},
	} {
		if errors.Is(err, known.err) {
			return newProblem(known.status, known.code, known.field, known.err.Error())
		}
	}
	return problemOf(err)
}

// stream writes events. Two write to it: the follower and the keep-alive.
type stream struct {
	w     http.ResponseWriter
	begun bool // only the follower looks

	mu sync.Mutex
}

func (s *stream) item(i session.Item) error {
	data, err := json.Marshal(i)
	if err != nil {
		return err
	}
	if !s.begun {
		s.mu.Lock()
		h := s.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("X-Accel-Buffering", "no")
		s.w.WriteHeader(http.StatusOK)
		s.begun = true
		s.mu.Unlock()
	}
	switch {
	case i.Snapshot != nil:
		// Without an id: its events are still to come.
		return s.event("snapshot", "", data)
	case i.Preview != nil:
		return s.event("preview", "", data)
	}
	return s.event("events", strconv.FormatInt(i.Seq, 10), data)
}

func (s *stream) event(name, id string, data []byte) error {
	if id != "" {
		id = "id: " + id + "\n"
	}
	return s.write(fmt.Sprintf("event: %s\n%sdata: %s\n\n", name, id, data))
}

func (s *stream) comment(text string) error {
	s.mu.Lock()
	begun := s.begun
	s.mu.Unlock()
	if !begun {
		return nil
	}
	return s.write(": " + text + "\n\n")
}

func (s *stream) write(text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	deadline(s.w)
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return http.NewResponseController(s.w).Flush()
}
