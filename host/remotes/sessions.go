package remotes

import (
	"context"
	"errors"

	"meanwhile/host/agent"
	"meanwhile/host/agent/inbox"
	"meanwhile/host/gateway"
	"meanwhile/host/internal/id"
	"meanwhile/host/session"
	"meanwhile/shared/event"
	"meanwhile/shared/projection"
)

type sessionParams struct {
	SessionID string `json:"sessionId"`
}

type createParams struct {
	Title     string `json:"title"`
	CWD       string `json:"cwd"`
	Text      string `json:"text"`
	MessageID string `json:"messageId"`
}

type createResult struct {
	SessionID string `json:"sessionId"`
	MessageID string `json:"messageId,omitempty"`
}

type sendParams struct {
	SessionID string `json:"sessionId"`
	Text      string `json:"text"`
	MessageID string `json:"messageId"`
}

type sendResult struct {
	MessageID string `json:"messageId"`
}

type cancelParams struct {
	SessionID string `json:"sessionId"`
	Reason    string `json:"reason"`
}

type cancelResult struct {
	Cancelled bool `json:"cancelled"`
}

type forkParams struct {
	SessionID string  `json:"sessionId"`
	At        *int64  `json:"at"`
	Title     *string `json:"title"`
}

type renameParams struct {
	SessionID string  `json:"sessionId"`
	Title     *string `json:"title"`
}

type archiveParams struct {
	SessionID string `json:"sessionId"`
	Archived  *bool  `json:"archived"`
}

type followParams struct {
	SessionID string `json:"sessionId"`
	After     *int64 `json:"after"`
}

func bindSessions(g *gateway.Gateway, o Options) {
	unary(g, "session/create", admin, func(ctx context.Context, _ *gateway.Caller, p createParams) (createResult, error) {
		if p.Text != "" { // before there is a session that nobody asked for
			if err := inbox.Check(promptOf(&p.MessageID, p.Text)); err != nil {
				return createResult{}, err
			}
		}
		log, err := o.Sessions.Create(ctx, event.Header{Title: p.Title, CWD: p.CWD})
		if err != nil {
			return createResult{}, err
		}
		out := createResult{SessionID: log.ID()}
		if p.Text == "" {
			return out, nil
		}
		out.MessageID, err = send(ctx, o, log.ID(), p.MessageID, p.Text)
		return out, err
	})
	unary(g, "session/send", admin, func(ctx context.Context, _ *gateway.Caller, p sendParams) (sendResult, error) {
		if err := need("sessionId", p.SessionID, "text", p.Text); err != nil {
			return sendResult{}, err
		}
		message, err := send(ctx, o, p.SessionID, p.MessageID, p.Text)
		return sendResult{message}, err
	})
	unary(g, "session/cancel", admin, func(ctx context.Context, _ *gateway.Caller, p cancelParams) (cancelResult, error) {
		if err := known(o, p.SessionID); err != nil {
			return cancelResult{}, err
		}
		// A session without a live agent has no turn to cancel.
		a, ok := o.Agents.Get(p.SessionID)
		if p.Reason == "" {
			p.Reason = "cancelled by the user"
		}
		return cancelResult{ok && a.Cancel(p.Reason)}, nil
	})
	unary(g, "session/continue", admin, func(ctx context.Context, _ *gateway.Caller, p sessionParams) (none, error) {
		a, err := resume(ctx, o, p.SessionID)
		if err != nil {
			return none{}, err
		}
		return none{}, a.Continue()
	})
	unary(g, "session/fork", admin, func(ctx context.Context, _ *gateway.Caller, p forkParams) (createResult, error) {
		if err := need("sessionId", p.SessionID); err != nil {
			return createResult{}, err
		}
		log, err := o.Sessions.Fork(ctx, p.SessionID, p.At, func(h *event.Header) {
			// What an outside agent said is a good start for this host's own.
			h.Agent = nil
			if p.Title != nil {
				h.Title = *p.Title
			}
		})
		if err != nil {
			return createResult{}, err
		}
		return createResult{SessionID: log.ID()}, nil
	})
	unary(g, "session/rename", admin, func(ctx context.Context, _ *gateway.Caller, p renameParams) (none, error) {
		if err := need("sessionId", p.SessionID); err != nil {
			return none{}, err
		}
		if p.Title == nil {
			return none{}, missing("title")
		}
		return none{}, o.Sessions.Rename(ctx, p.SessionID, *p.Title)
	})
	unary(g, "session/archive", admin, func(ctx context.Context, _ *gateway.Caller, p archiveParams) (none, error) {
		if err := need("sessionId", p.SessionID); err != nil {
			return none{}, err
		}
		return none{}, o.Sessions.Archive(ctx, p.SessionID, p.Archived == nil || *p.Archived)
	})
	unary(g, "session/delete", admin, func(ctx context.Context, _ *gateway.Caller, p sessionParams) (none, error) {
		if err := need("sessionId", p.SessionID); err != nil {
			return none{}, err
		}
		return none{}, remove(ctx, o, p.SessionID)
	})
	stream(g, "host/follow", read, func(ctx context.Context, _ *gateway.Caller, _ none, send func(any) error) error {
		return o.Sessions.FollowList(ctx, func(item session.ListItem) error { return send(item) })
	})
	stream(g, "session/follow", read, func(ctx context.Context, _ *gateway.Caller, p followParams, send func(any) error) error {
		if err := need("sessionId", p.SessionID); err != nil {
			return err
		}
		return o.Sessions.Follow(ctx, p.SessionID, p.After, func(item session.Item) error { return send(item) })
	})
}

// known refuses a session that does not exist.
func known(o Options, sessionID string) error {
	if err := need("sessionId", sessionID); err != nil {
		return err
	}
	if _, ok := o.Sessions.Row(sessionID); !ok {
		return session.ErrNoSession
	}
	return nil
}

// resume returns the live agent of a session, waking a cold one.
func resume(ctx context.Context, o Options, sessionID string) (*agent.Agent, error) {
	if err := need("sessionId", sessionID); err != nil {
		return nil, err
	}
	return o.Agents.Resume(ctx, sessionID)
}

// promptOf is a prompt as a message, with an id of its own if it has none.
func promptOf(messageID *string, text string) event.Message {
	if *messageID == "" {
		*messageID = id.New()
	}
	return event.Message{ID: *messageID, Source: event.Source{Kind: event.SourceUser}, Text: text}
}

// send queues a prompt, once for each message id.
func send(ctx context.Context, o Options, sessionID, messageID, text string) (string, error) {
	m := promptOf(&messageID, text)
	// The agent may close for being idle between the two calls; the next
	// instance takes the message.
	for {
		a, err := resume(ctx, o, sessionID)
		if err != nil {
			return "", err
		}
		err = a.Send(ctx, m)
		switch {
		case err == nil, errors.Is(err, inbox.ErrPending):
			return messageID, nil
		case !errors.Is(err, agent.ErrNotLive):
			return "", err
		}
	}
}

// remove stops whoever drives a session, then removes its log.
func remove(ctx context.Context, o Options, sessionID string) error {
	if err := known(o, sessionID); err != nil {
		return err
	}
	if a, ok := o.Agents.Get(sessionID); ok {
		// An outside agent's asks are held by nobody's turn: end them here.
		for _, callID := range openAsks(a.Log()) {
			if w, ok := o.Questions.Lookup(sessionID, callID); ok {
				w.Abort()
			}
		}
		if err := o.Agents.Remove(ctx, a); err != nil {
			return err
		}
	}
	if err := o.Sessions.Delete(ctx, sessionID); err != nil {
		return err
	}
	o.Outside.Forget(sessionID)
	// Someone may have woken it meanwhile; its log takes nothing any more.
	if a, ok := o.Agents.Get(sessionID); ok {
		return o.Agents.Remove(ctx, a)
	}
	return nil
}

func openAsks(l *session.Log) []string {
	var ids []string
	l.View(func(s *session.State) {
		for q := range s.Questions.AllActive {
			if q.State == projection.Open {
				ids = append(ids, q.CallID)
			}
		}
	})
	return ids
}
