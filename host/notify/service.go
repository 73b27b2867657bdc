package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"meanwhile/host/session"
)

const (
	// DefaultDelay is how long somebody at the page has to answer first.
	DefaultDelay = 10 * time.Second

	trackedMax    = 10_000 // asks followed at once; further ones are not announced
	labelMax      = 200    // bytes of a label that fits a button
	announcedKind = "announced"
	announcedMax  = 2000 // kept over a restart
	firstRetry    = 2 * time.Second
	reminderAt    = 5           // a fifth of the window is left
	reminderLeast = time.Minute // of a window that has a reminder
)

// Values is the small durable area beside the sessions.
type Values interface {
	Put(kind, key string, data []byte) error
	Delete(kind, key string) error
	Get(kind, key string) ([]byte, error)
	Each(kind string, fn func(key string, data []byte) error) error
}

// Sessions is the list of sessions as it changes.
type Sessions interface {
	FollowList(ctx context.Context, fn func(session.ListItem) error) error
	Row(id string) (session.Row, bool)
}

// Options of a Service. Values, Sessions, Remaining and Link are needed.
type Options struct {
	Values   Values
	Sessions Sessions
	// Remaining is the time to the deadline of an open ask, 0 for one without.
	Remaining func(sessionID, callID string) time.Duration
	// Link leads to a card on the page.
	Link func(cardKey string) string
	// Live tells whether a token still is; nil: all are.
	Live func(tokenID string) bool

	Webhook       string // address; "" = none
	WebhookSecret string // needed with Webhook
	Ntfy          string // address of the topic; "" = none
	NtfyToken     string // "" = none

	Text         bool          // the text of questions may leave the host
	Delay        time.Duration // see DefaultDelay; 0 = at once
	AllowPrivate bool          // push endpoints and redirects may lead to private addresses
	Contact      string        // https or mailto, for push services

	Log   *slog.Logger  // nil: slog.Default
	Retry time.Duration // before the second attempt; 0 = 2 s
}

// target is one place that is told.
type target struct {
	*outbox
	token   string // of a subscription
	created int64
}

// Service notifies. Close it.
type Service struct {
	opt    Options
	post   *poster
	vapid  *vapid
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex // guards what follows; nothing is sent or stored under it
	closed  bool
	asks    map[string]*entry            // by tag
	by      map[string]map[string]*entry // session, then tag
	targets map[string]*target           // by id
	saved   int                          // announced asks in the value area
	dropped int64                        // asks not followed
}

// Open reads what is stored and starts following the list of sessions.
func Open(opt Options) (*Service, error) {
	if opt.Log == nil {
		opt.Log = slog.Default()
	}
	if opt.Retry == 0 {
		opt.Retry = firstRetry
	}
	if opt.Live == nil {
		opt.Live = func(string) bool { return true }
	}
	s := &Service{
		opt: opt, post: newPoster(opt.AllowPrivate),
		asks: map[string]*entry{}, by: map[string]map[string]*entry{}, targets: map[string]*target{},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if err := s.load(); err != nil {
		s.cancel()
		return nil, fmt.Errorf("notifications: %w", err)
	}
	if opt.Webhook != "" {
		w := &webhook{post: s.post, url: opt.Webhook, secret: secretBytes(opt.WebhookSecret), now: time.Now}
		s.add("webhook", "", Status{ID: "webhook", Kind: "webhook", Where: hostOf(opt.Webhook)}, w.send, nil)
	}
	if opt.Ntfy != "" {
		t := &ntfy{post: s.post, topic: strings.TrimSuffix(opt.Ntfy, "/"), token: opt.NtfyToken}
		s.add("ntfy", "", Status{ID: "ntfy", Kind: "ntfy", Where: hostOf(opt.Ntfy)}, t.send, nil)
	}
	s.work.Go(func() {
		err := opt.Sessions.FollowList(s.ctx, func(item session.ListItem) error {
			s.listed(item)
			return nil
		})
		if err != nil && s.ctx.Err() == nil {
			opt.Log.Warn("notifications no longer follow the sessions", "error", err)
		}
	})
	return s, nil
}

// load reads the push key, the subscriptions and what was announced.
func (s *Service) load() error {
	raw, err := s.opt.Values.Get(vapidKind, "key")
	if err != nil {
		return err
	}
	fresh := raw == nil
	if s.vapid, raw, err = newVapid(raw); err != nil {
		return err
	}
	if s.vapid.contact = s.opt.Contact; fresh {
		if err := s.opt.Values.Put(vapidKind, "key", raw); err != nil {
			return err
		}
	}
	var gone []string
	err = s.opt.Values.Each(subscriptionKind, func(key string, data []byte) error {
		var sub stored
		token, _, _ := strings.Cut(key, "/")
		if json.Unmarshal(data, &sub) != nil || !s.opt.Live(token) {
			gone = append(gone, key)
			return nil
		}
		s.addPush(key, token, sub)
		return nil
	})
	if err != nil {
		return err
	}
	for _, key := range gone {
		if err := s.opt.Values.Delete(subscriptionKind, key); err != nil {
			return err
		}
	}
	return s.opt.Values.Each(announcedKind, func(tag string, data []byte) error {
		var a struct{ Session, Call, Key, Agent string }
		if json.Unmarshal(data, &a) != nil {
			return nil
		}
		s.saved++
		s.keepLocked(&entry{
			tag: tag, key: a.Key, session: a.Session, call: a.Call, announced: true, continued: true, recovered: true, listed: true,
			note: Note{Tag: tag, Key: a.Key, SessionID: a.Session, CallID: a.Call, Agent: a.Agent, recovered: true},
		})
		return nil
	})
}

// Close ends what is on its way. What was not sent is not kept: it was about a
// page that shows the same.
func (s *Service) Close() {
	s.mu.Lock()
	s.closed = true
	for _, e := range s.asks {
		if e.timer != nil {
			e.timer.Stop()
		}
	}
	s.mu.Unlock()
	s.cancel()
	s.work.Wait()
	s.post.close()
}
