package app_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"meanwhile/host/config"
	"meanwhile/host/internal/hosttest"
)

// A whole host: an ask nobody looks at reaches the webhook, once, and so does
// its late answer; after a restart it is no news.
func TestNotifications(t *testing.T) {
	got := make(chan struct {
		Type string
		Data struct{ Ask, Body, URL, By string }
	}, 100)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if r.Header.Get("Webhook-Signature") == "" {
			t.Error("not signed")
		}
		var m struct {
			Type string
			Data struct{ Ask, Body, URL, By string }
		}
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Error(err)
		}
		got <- m
	}))
	defer hook.Close()
	defer hook.CloseClientConnections()
	h := hosttest.Start(t, hosttest.Options{Script: script(1), Change: func(c *config.Config) {
		c.Notify.Webhook, c.Notify.WebhookSecret, c.Notify.Delay = hook.URL, "s", 0
		c.HTTP.PublicURL = "https://box.example"
	}})
	person := h.Connect("Phone", "read", "answer", "admin")
	session := begin(person)
	ask := person.Next()
	next := func(kind string) (tag string) {
		t.Helper()
		select {
		case m := <-got:
			if m.Type != kind || !strings.HasPrefix(m.Data.URL, "https://box.example/#/card/c%3A"+session+"%3A") {
				t.Errorf("told %+v, want %s", m, kind)
			}
			return m.Data.Ask
		case <-time.After(20 * time.Second):
			t.Fatalf("%s did not come", kind)
		}
		return ""
	}
	tag := next("ask.arrived")
	if other := next("ask.continued"); other != tag {
		t.Errorf("it carried on as %s, want %s", other, tag)
	}
	says(t, person, session, "carrying on")

	h.Restart()
	person = h.Connect("Phone", "read", "answer", "admin")
	person.Call("userQuestions/answer", obj{"sessionId": session, "callId": ask.Request.Wait.CallID, "submissionId": "x1",
		"answer": obj{"answers": []obj{{"id": "store", "selected": []string{"SQLite"}}}}}, nil)
	if other := next("ask.settled"); other != tag {
		t.Errorf("settled %s, want %s", other, tag)
	}
	var report struct {
		Targets []struct {
			Kind, Error string
			Sent        int
		}
	}
	for end := time.Now().Add(20 * time.Second); ; {
		person.Call("notify/status", obj{}, &report)
		if len(report.Targets) == 1 && report.Targets[0].Sent == 1 || time.Now().After(end) {
			break
		}
	}
	if len(report.Targets) != 1 || report.Targets[0].Kind != "webhook" || report.Targets[0].Sent != 1 || report.Targets[0].Error != "" {
		t.Errorf("report %+v, want one webhook that was told once since the restart", report)
	}
}

// A subscription belongs to a token with the right to answer, and goes with it.
func TestPushSubscriptions(t *testing.T) {
	h := hosttest.Start(t, hosttest.Options{})
	asker := h.Connect("bot", "ask")
	if err := asker.Try("push/key", obj{}, nil); err == nil {
		t.Error("a token that may only ask got the key")
	}
	token, id := h.Token("Phone", "read", "answer")
	phone := h.ConnectWith(token)
	var key struct{ Key string }
	phone.Call("push/key", obj{}, &key)
	if len(key.Key) != 87 {
		t.Errorf("key %q, want 65 bytes in base64url", key.Key)
	}
	// Any point of the curve will do: the host's own.
	good := obj{"endpoint": "https://push.example/1", "keys": obj{"p256dh": key.Key, "auth": "AAAAAAAAAAAAAAAAAAAAAA"}}
	phone.Call("push/subscribe", good, nil)
	if err := phone.Try("push/subscribe", obj{"endpoint": "http://push.example/1", "keys": good["keys"]}, nil); err == nil || !strings.Contains(err.Error(), "https") {
		t.Errorf("a plain endpoint: got %v, want a refusal", err)
	}
	var report struct {
		Targets []struct{ Kind, Where, Label string }
	}
	phone.Call("notify/status", obj{}, &report)
	if len(report.Targets) != 1 || report.Targets[0].Where != "push.example" || report.Targets[0].Label != "Phone" {
		t.Errorf("report %+v, want the subscription of Phone", report)
	}
	admin := h.Local()
	admin.Call("token/revoke", obj{"id": id}, nil)
	admin.Call("notify/status", obj{}, &report)
	if len(report.Targets) != 0 {
		t.Errorf("report %+v, want none: the token is revoked", report)
	}
	var login struct {
		URL string
		QR  struct {
			Size int
			Path string
		}
	}
	admin.Call("login/create", obj{}, &login)
	if login.QR.Size < 21 || !strings.HasPrefix(login.QR.Path, "M0 0h7") {
		t.Errorf("login link %+v has no drawing", login)
	}
}
