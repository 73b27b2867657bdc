package notify

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
)

// add makes a target. The caller has the lock, or is alone.
func (s *Service) add(id, token string, st Status, send func(context.Context, Note) error, gone func()) {
	s.targets[id] = &target{token: token, outbox: &outbox{
		ctx: s.ctx, work: &s.work, log: s.opt.Log, send: send, gone: gone, retry: s.opt.Retry, status: st,
	}}
}

func (s *Service) addPush(key, token string, sub stored) {
	p := &push{post: s.post, sub: sub.Subscription, vapid: s.vapid, now: time.Now, sealer: sealFresh}
	_, id, _ := strings.Cut(key, "/")
	s.add(key, token, Status{ID: id, Kind: "push", Where: hostOf(sub.Endpoint), Label: sub.Label}, p.send, func() {
		s.opt.Log.Info("a push subscription is gone", "token", token, "where", hostOf(sub.Endpoint))
		s.drop(key)
	})
	s.targets[key].created = sub.Created
}

// Key is what a browser subscribes with.
func (s *Service) Key() string { return s.vapid.public }

// Subscribe keeps a browser's subscription for as long as its token lives.
func (s *Service) Subscribe(tokenID, label string, sub Subscription) error {
	if err := sub.check(s.opt.AllowPrivate); err != nil {
		return err
	}
	key := storeKey(tokenID, sub.Endpoint)
	full := stored{Subscription: sub, Label: label, Created: time.Now().UnixMilli()}
	data, err := json.Marshal(full)
	if err != nil {
		return err
	}
	s.mu.Lock()
	own, oldest := 0, ""
	for id, t := range s.targets {
		if t.token != tokenID || id == key {
			continue
		}
		if own++; oldest == "" || t.created < s.targets[oldest].created {
			oldest = id
		}
	}
	none := s.targets[key] == nil && len(s.targets) >= subscriptionMax
	s.mu.Unlock()
	if none {
		return ErrTooManyPush
	}
	if err := s.opt.Values.Put(subscriptionKind, key, data); err != nil {
		return err
	}
	s.mu.Lock()
	if old := s.targets[key]; old != nil {
		old.close()
	}
	s.addPush(key, tokenID, full)
	s.mu.Unlock()
	// A browser that draws a new endpoint forgets the old one.
	if own >= perToken {
		s.drop(oldest)
	}
	// Revoked meanwhile?
	if !s.opt.Live(tokenID) {
		s.DropToken(tokenID)
	}
	return nil
}

// Unsubscribe removes a subscription of the token and reports whether there was one.
func (s *Service) Unsubscribe(tokenID, endpoint string) bool {
	return s.drop(storeKey(tokenID, endpoint))
}

// DropToken removes the subscriptions of a token that was revoked.
func (s *Service) DropToken(tokenID string) {
	s.mu.Lock()
	var keys []string
	for id, t := range s.targets {
		if t.token == tokenID && t.token != "" {
			keys = append(keys, id)
		}
	}
	s.mu.Unlock()
	for _, key := range keys {
		s.drop(key)
	}
}

func (s *Service) drop(key string) bool {
	s.mu.Lock()
	t := s.targets[key]
	delete(s.targets, key)
	s.mu.Unlock()
	if t == nil {
		return false
	}
	t.close()
	if err := s.opt.Values.Delete(subscriptionKind, key); err != nil {
		s.opt.Log.Warn("push subscription not removed", "error", err)
	}
	return true
}

// Report is how notifications do.
type Report struct {
	Targets []Status `json:"targets"`
	Text    bool     `json:"text"`              // the text of questions leaves the host
	Dropped int64    `json:"dropped,omitempty"` // asks over the limit, never announced
}

// Report lists the targets by kind and id.
func (s *Service) Report() Report {
	s.mu.Lock()
	targets := slices.Collect(maps.Values(s.targets))
	r := Report{Targets: []Status{}, Text: s.opt.Text, Dropped: s.dropped}
	s.mu.Unlock()
	for _, t := range targets {
		r.Targets = append(r.Targets, t.report())
	}
	slices.SortFunc(r.Targets, func(a, b Status) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID)) })
	return r
}

// Try sends a test to every target that all share, and to those of the token.
func (s *Service) Try(tokenID string) int {
	now := time.Now()
	n := Note{Kind: Test, Tag: tagOf("test", tokenID), Key: "test", Link: s.opt.Link(""), At: now, Until: now.Add(time.Minute)}
	s.mu.Lock()
	defer s.mu.Unlock()
	told := 0
	for _, t := range s.targets {
		if t.token == "" || t.token == tokenID {
			t.offer(n)
			told++
		}
	}
	return told
}
