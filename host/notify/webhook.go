package notify

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// webhookBody is what a webhook gets.
type webhookBody struct {
	Type      string      `json:"type"` // ask.arrived, ask.reminder, ask.continued, ask.settled, test
	Timestamp time.Time   `json:"timestamp"`
	Data      webhookData `json:"data"`
}

type webhookData struct {
	Ask       string     `json:"ask,omitempty"` // the same for all that is said of one ask
	SessionID string     `json:"sessionId,omitempty"`
	CallID    string     `json:"callId,omitempty"`
	Agent     string     `json:"agent,omitempty"`
	Title     string     `json:"title"`
	Body      string     `json:"body"`
	Questions int        `json:"questions,omitempty"`
	URL       string     `json:"url"`
	Deadline  *time.Time `json:"deadline,omitempty"`
	By        string     `json:"by,omitempty"`
}

// webhook signs as the Standard Webhooks scheme has it, so that receivers can
// use a library they know.
type webhook struct {
	post   *poster
	url    string
	secret []byte
	now    func() time.Time
}

// secretBytes reads a secret: base64 behind "whsec_", else the text itself.
func secretBytes(text string) []byte {
	if rest, ok := strings.CutPrefix(text, "whsec_"); ok {
		if raw, err := base64.StdEncoding.DecodeString(rest); err == nil {
			return raw
		}
	}
	return []byte(text)
}

func (w *webhook) send(ctx context.Context, n Note) error {
	kind := "ask." + string(n.Kind)
	if n.Kind == Test {
		kind = "test"
	}
	body := webhookBody{Type: kind, Timestamp: n.At.UTC(), Data: webhookData{
		Ask: n.Tag, SessionID: n.SessionID, CallID: n.CallID, Agent: n.Agent, Title: n.Title(), Body: n.Body(),
		Questions: n.Count, URL: n.Link, By: n.By,
	}}
	if !n.Deadline.IsZero() {
		at := n.Deadline.UTC()
		body.Data.Deadline = &at
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return &sendError{text: err.Error(), final: true}
	}
	// The id is the same for every attempt; the time is the attempt's, so that a
	// receiver can refuse an old one that somebody kept.
	id, at := n.Tag+"."+string(n.Kind), strconv.FormatInt(w.now().Unix(), 10)
	return w.post.do(ctx, message{method: http.MethodPost, url: w.url, body: raw, trusted: true, header: http.Header{
		"Content-Type":      {"application/json"},
		"User-Agent":        {"Meanwhile"},
		"Webhook-Id":        {id},
		"Webhook-Timestamp": {at},
		"Webhook-Signature": {"v1," + sign(w.secret, id, at, raw)},
	}})
}

// sign is the signature of one message.
func sign(secret []byte, id, at string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(id + "." + at + "."))
	mac.Write(body)
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
