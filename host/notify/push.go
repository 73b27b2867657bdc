package notify

import (
	"context"
	"crypto/ecdh"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	subscriptionKind = "push"  // in the value area: token id / hash of the endpoint
	vapidKind        = "vapid" // in the value area: the one key

	endpointMax     = 1024 // bytes
	perToken        = 8    // subscriptions of one token; the oldest goes
	subscriptionMax = 256  // of all; over it none is taken
	urgentWithin    = 5 * time.Minute
	pushHead        = 200            // characters of a text in a push
	quietLife       = 24 * time.Hour // of a quiet line for a device that was away
)

// Errors of a subscription.
var (
	ErrBadSubscription = errors.New("a subscription needs an https endpoint, and the keys p256dh and auth as the browser gives them")
	ErrTooManyPush     = fmt.Errorf("there are already %d subscriptions: remove one first", subscriptionMax)
)

// Subscription is what a browser gives for Web Push.
type Subscription struct {
	Endpoint string `json:"endpoint"`
	P256dh   string `json:"p256dh"`
	Auth     string `json:"auth"`
}

// stored is a subscription in the value area.
type stored struct {
	Subscription
	Label   string `json:"label,omitempty"`
	Created int64  `json:"created"`
}

func (s Subscription) keys() (client, secret []byte, err error) {
	enc := base64.RawURLEncoding
	client, err1 := enc.DecodeString(strings.TrimRight(s.P256dh, "="))
	secret, err2 := enc.DecodeString(strings.TrimRight(s.Auth, "="))
	if err1 != nil || err2 != nil || len(client) != keyLen || len(secret) != secretLen {
		return nil, nil, ErrBadSubscription
	}
	if _, err := ecdh.P256().NewPublicKey(client); err != nil {
		return nil, nil, ErrBadSubscription
	}
	return client, secret, nil
}

func (s Subscription) check(insecure bool) error {
	u, err := url.Parse(s.Endpoint)
	if err != nil || len(s.Endpoint) > endpointMax || u.Host == "" || u.User != nil || u.Scheme != "https" && !(insecure && u.Scheme == "http") {
		return ErrBadSubscription
	}
	_, _, err = s.keys()
	return err
}

// storeKey names a subscription of a token.
func storeKey(tokenID, endpoint string) string {
	sum := sha256.Sum256([]byte(endpoint))
	return tokenID + "/" + base64.RawURLEncoding.EncodeToString(sum[:12])
}

// pushPayload is what the service worker reads. It puts the words together
// itself, in the language of its device.
type pushPayload struct {
	V          int    `json:"v"`
	Kind       Kind   `json:"kind"`
	Key        string `json:"key"` // the card; also the tag of what is shown
	Agent      string `json:"agent,omitempty"`
	Header     string `json:"header,omitempty"`
	Text       string `json:"text,omitempty"`
	Count      int    `json:"count,omitempty"`
	By         string `json:"by,omitempty"`
	SessionID  string `json:"sessionId,omitempty"`
	CallID     string `json:"callId,omitempty"`
	EventID    string `json:"eventId,omitempty"`
	QuestionID string `json:"questionId,omitempty"`
	Send       string `json:"send,omitempty"`
}

// push sends to one subscription.
type push struct {
	post   *poster
	sub    Subscription
	vapid  *vapid
	now    func() time.Time
	sealer func(plain, client, secret []byte) ([]byte, error)
}

func (p *push) send(ctx context.Context, n Note) error {
	client, secret, err := p.sub.keys()
	if err != nil {
		return &sendError{text: err.Error(), final: true, gone: true}
	}
	plain, err := json.Marshal(pushPayload{
		V: 1, Kind: n.Kind, Key: n.Key, Agent: n.Agent, Header: n.Header, Text: head(n.Text, pushHead), Count: n.Count, By: n.By,
		SessionID: n.SessionID, CallID: n.CallID, EventID: n.EventID, QuestionID: n.QuestionID, Send: n.Send,
	})
	if err != nil {
		return &sendError{text: err.Error(), final: true}
	}
	body, err := p.sealer(plain, client, secret)
	if err != nil {
		return &sendError{text: err.Error(), final: true}
	}
	now := p.now()
	who, err := p.vapid.authorization(p.sub.Endpoint, now)
	if err != nil {
		return &sendError{text: err.Error(), final: true}
	}
	h := http.Header{
		"Authorization":    {who},
		"Content-Encoding": {"aes128gcm"},
		"Content-Type":     {"application/octet-stream"},
		"Ttl":              {strconv.Itoa(int(lifeOf(n, now) / time.Second))},
		"Urgency":          {urgencyOf(n, now)},
	}
	if n.Tag != "" {
		h.Set("Topic", n.Tag)
	}
	return p.post.do(ctx, message{method: http.MethodPost, url: p.sub.Endpoint, header: h, body: body}, "Authorization")
}

// lifeOf is how long the push service keeps a note for a device that is away.
// A withdrawal replaces, by its topic, what waits there, and is then itself
// dropped: a device that never showed the question need not wake for its end.
func lifeOf(n Note, now time.Time) time.Duration {
	switch {
	case n.Kind == Settled, n.Kind == Test:
		return 0
	case n.Kind == Continued:
		return quietLife
	case n.Deadline.IsZero():
		return blockLife
	}
	return max(time.Second, n.Deadline.Sub(now))
}

func urgencyOf(n Note, now time.Time) string {
	switch {
	case n.Kind == Continued:
		return "low"
	case n.Kind == Settled, n.Kind == Test, n.Deadline.IsZero():
		return "normal"
	case n.Deadline.Sub(now) <= urgentWithin:
		return "high"
	}
	return "normal"
}
