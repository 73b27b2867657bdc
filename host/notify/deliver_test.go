package notify

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"meanwhile/host/question"
)

const testSecret = "a secret of the receiver"

func decode(t *testing.T, m received) webhookBody {
	t.Helper()
	h := m.header
	at, err := strconv.ParseInt(h.Get("Webhook-Timestamp"), 10, 64)
	if err != nil || time.Since(time.Unix(at, 0)).Abs() > time.Minute {
		t.Errorf("timestamp %q is not now", h.Get("Webhook-Timestamp"))
	}
	want := "v1," + sign([]byte(testSecret), h.Get("Webhook-Id"), h.Get("Webhook-Timestamp"), m.body)
	if got := h.Get("Webhook-Signature"); got != want {
		t.Errorf("signature %q, want %q", got, want)
	}
	var b webhookBody
	if err := json.Unmarshal(m.body, &b); err != nil {
		t.Fatal(err)
	}
	return b
}

// A signature of the Standard Webhooks scheme, computed with another tool.
func TestSignature(t *testing.T) {
	secret := secretBytes("whsec_" + base64.StdEncoding.EncodeToString([]byte("key")))
	// printf 'id.1.{}' | openssl dgst -sha256 -hmac key -binary | base64
	if got, want := sign(secret, "id", "1", []byte("{}")), "5PVmP2AfJGwnp9flV+flrzfukNWA9zyUdqvI+IQalVs="; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestWebhookRetriesUntilTaken(t *testing.T) {
	r := newReceiver(t)
	w := newWorld(t, Options{Webhook: r.URL + "/hook?key=hidden", WebhookSecret: testSecret}, nil)
	defer w.Close()
	r.answer(500, 429)
	settle := w.ask("c1", oneChoice, 0)
	first := r.next(t)
	body := decode(t, first)
	for range 2 { // the same again, under the same id
		again := r.next(t)
		decode(t, again)
		if string(again.body) != string(first.body) || again.header.Get("Webhook-Id") != first.header.Get("Webhook-Id") {
			t.Errorf("an attempt differs: %s, want %s", again.body, first.body)
		}
	}
	if body.Type != "ask.arrived" || body.Data.Title != "build-bot" || body.Data.Body != "1 question" {
		t.Errorf("said %q %q %q, want no text of the question", body.Type, body.Data.Title, body.Data.Body)
	}
	if strings.Contains(string(first.body), "Database") || strings.Contains(string(first.body), "store") {
		t.Errorf("text left the host: %s", first.body)
	}
	settle(question.Settlement{Kind: question.Result, ClientName: "Phone"})
	end := decode(t, r.next(t))
	if end.Type != "ask.settled" || end.Data.Ask != body.Data.Ask || end.Data.By != "Phone" {
		t.Errorf("the end was %+v, want ask.settled of %s by Phone", end, body.Data.Ask)
	}
}

func TestFailuresAreVisible(t *testing.T) {
	for _, tc := range []struct {
		name     string
		answers  []int
		attempts int
		want     string
	}{
		{name: "refused for good", answers: []int{403}, attempts: 1, want: "answered 403"},
		{name: "gives up", answers: []int{500, 500, 500, 500, 500, 500}, attempts: maxTries, want: "answered 500"},
		{name: "a redirect that would lose the body", answers: []int{302}, attempts: 1, want: "answered 302"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newReceiver(t)
			w := newWorld(t, Options{Webhook: r.URL + "/hook?key=hidden", WebhookSecret: testSecret}, nil)
			defer w.Close()
			r.answer(tc.answers...)
			w.ask("c1", oneChoice, 0)
			for range tc.attempts {
				r.next(t)
			}
			st := w.settled(t)
			if st.Failed != 1 || st.Error != tc.want || st.Sent != 0 || st.Queued != 0 {
				t.Errorf("status %+v, want one failure: %s", st, tc.want)
			}
			if strings.Contains(st.Where, "hidden") {
				t.Errorf("the status shows the whole address: %s", st.Where)
			}
			r.nothing(t)
			w.ask("c2", oneChoice, 0)
			r.next(t)
			if st = w.settled(t); st.Error != "" || st.Sent != 1 || st.Failed != 1 {
				t.Errorf("status after a success %+v, want the error gone and the count kept", st)
			}
		})
	}
}

// settled waits until the first target has nothing to do.
func (w *world) settled(t *testing.T) Status {
	t.Helper()
	for end := time.Now().Add(within); time.Now().Before(end); {
		w.mu.Lock()
		var busy bool
		for _, tg := range w.targets {
			tg.outbox.mu.Lock()
			busy = busy || tg.running
			tg.outbox.mu.Unlock()
		}
		w.mu.Unlock()
		if !busy {
			return w.Report().Targets[0]
		}
	}
	t.Fatal("a target never came to rest")
	return Status{}
}

func TestRedirects(t *testing.T) {
	for _, tc := range []struct {
		name    string
		private bool
		taken   bool
	}{
		{name: "to a private address"},
		{name: "to a private address that is allowed", private: true, taken: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			second, first := newReceiver(t), newReceiver(t)
			first.header = http.Header{"Location": {second.URL + "/there"}}
			first.answer(http.StatusPermanentRedirect)
			w := newWorld(t, Options{Webhook: first.URL, WebhookSecret: testSecret, AllowPrivate: tc.private}, nil)
			defer w.Close()
			w.ask("c1", oneChoice, 0)
			first.next(t)
			st := w.settled(t)
			if tc.taken {
				m := second.next(t)
				decode(t, m)
				if m.method != http.MethodPost || m.path != "/there" || st.Sent != 1 {
					t.Errorf("%s %s, status %+v; want the same post at the new place", m.method, m.path, st)
				}
				return
			}
			second.nothing(t)
			if st.Failed != 1 || !strings.Contains(st.Error, "not a public one") {
				t.Errorf("status %+v, want a refusal", st)
			}
		})
	}
}

func TestNtfy(t *testing.T) {
	r := newReceiver(t)
	w := newWorld(t, Options{Ntfy: r.URL + "/topic", NtfyToken: "tk", Text: true}, nil)
	defer w.Close()
	long := strings.Repeat("word ", 500)
	settle := w.ask("c1", `[{"id":"a","header":"Größe","question":"`+long+`"}]`, 0)
	m := r.next(t)
	if m.method != http.MethodPost || m.path != "/topic" || m.header.Get("Authorization") != "Bearer tk" {
		t.Errorf("got %s %s %v", m.method, m.path, m.header)
	}
	if n := len(m.body); n > headMax+len("…") || !strings.HasSuffix(string(m.body), "…") {
		t.Errorf("%d bytes of text, want a head of %d", n, headMax)
	}
	if got, want := m.header.Get("Click"), "https://box.example/#/card/c:s1:c1"; got != want {
		t.Errorf("link %q, want %q", got, want)
	}
	if got := m.header.Get("Title"); !strings.HasPrefix(got, "=?utf-8?b?") {
		t.Errorf("title %q is not encoded", got)
	}
	tag := m.header.Get("X-Sequence-Id")
	if tag == "" || m.header.Get("Priority") != "3" || m.header.Get("Tags") == "" {
		t.Errorf("headers %v", m.header)
	}
	r.answer(http.StatusNotFound) // an older server cannot take it back
	settle(question.Settlement{Kind: question.Result})
	if m = r.next(t); m.method != http.MethodDelete || m.path != "/topic/"+tag {
		t.Errorf("the end was %s %s, want DELETE /topic/%s", m.method, m.path, tag)
	}
	if st := w.settled(t); st.Failed != 0 || st.Error != "" {
		t.Errorf("an older server counts as a failure: %+v", st)
	}
}

func TestPush(t *testing.T) {
	r := newReceiver(t)
	values := newMemory()
	w := newWorld(t, Options{AllowPrivate: true, Text: true, Contact: "mailto:me@box.example"}, values)
	d := newDevice(t)
	if err := w.Subscribe("t1", "Phone", d.subscription(r.URL+"/one")); err != nil {
		t.Fatal(err)
	}
	// After a restart the subscription and the key are the same.
	key := w.Key()
	w.Close()
	w = newWorld(t, Options{AllowPrivate: true, Text: true, Contact: "mailto:me@box.example"}, values)
	defer w.Close()
	if w.Key() != key {
		t.Error("the key changed: every subscription is lost")
	}
	read := func(m received) (p pushPayload) {
		t.Helper()
		checkVapid(t, m.header.Get("Authorization"), key, r.URL, time.Now())
		plain, err := d.open(m.body)
		if err != nil {
			t.Fatalf("decrypt: %v", err)
		}
		if err := json.Unmarshal(plain, &p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	settle := w.ask("c1", oneChoice, 4*time.Minute)
	m := r.next(t)
	p := read(m)
	if p.Kind != Arrived || p.Key != "c:s1:c1" || p.Send != "Postgres (Recommended)" || p.QuestionID != "db" || p.EventID != "e-c1" || p.Header != "Database" {
		t.Errorf("payload %+v", p)
	}
	topic, ttl := m.header.Get("Topic"), m.header.Get("Ttl")
	if seconds, _ := strconv.Atoi(ttl); seconds < 230 || seconds > 240 {
		t.Errorf("TTL %s, want up to the deadline", ttl)
	}
	if m.header.Get("Urgency") != "high" || len(topic) == 0 || len(topic) > 32 || m.header.Get("Content-Encoding") != "aes128gcm" {
		t.Errorf("headers %v", m.header)
	}
	settle(question.Settlement{Kind: question.Rejected, Code: question.CodeTimedOut})
	if m = r.next(t); read(m).Kind != Continued || m.header.Get("Urgency") != "low" || m.header.Get("Topic") != topic {
		t.Errorf("carried on: %v", m.header)
	}
	// Far from its deadline an ask is not urgent.
	w.ask("c2", oneChoice, time.Hour)
	if m = r.next(t); m.header.Get("Urgency") != "normal" || m.header.Get("Topic") == topic {
		t.Errorf("another ask: %v", m.header)
	}
	// A subscription that is gone is removed.
	r.answer(http.StatusGone)
	w.ask("c3", oneChoice, 0)
	r.next(t)
	for end := time.Now().Add(within); values.count(subscriptionKind) > 0; {
		if time.Now().After(end) {
			t.Fatal("the subscription is still stored")
		}
	}
}

func TestPushEndpointsArePublic(t *testing.T) {
	r := newReceiver(t)
	w := newWorld(t, Options{}, nil)
	defer w.Close()
	endpoint := "https" + strings.TrimPrefix(r.URL, "http")
	if err := w.Subscribe("t1", "Phone", newDevice(t).subscription(endpoint)); err != nil {
		t.Fatal(err)
	}
	w.ask("c1", oneChoice, 0)
	for end := time.Now().Add(within); w.settled(t).Failed == 0 && time.Now().Before(end); {
	}
	if st := w.settled(t); !strings.Contains(st.Error, "not a public one") {
		t.Errorf("status %+v, want a refusal", st)
	}
	r.nothing(t)
}

func TestSubscriptionsOfAToken(t *testing.T) {
	values := newMemory()
	w := newWorld(t, Options{AllowPrivate: true}, values)
	defer w.Close()
	d := newDevice(t)
	for i := range perToken + 2 {
		if err := w.Subscribe("t1", "Phone", d.subscription("http://127.0.0.1:1/"+strconv.Itoa(i))); err != nil {
			t.Fatal(err)
		}
	}
	if got := values.count(subscriptionKind); got != perToken {
		t.Errorf("%d subscriptions of one token, want %d", got, perToken)
	}
	if w.Unsubscribe("t2", "http://127.0.0.1:1/9") {
		t.Error("another token removed it")
	}
	if !w.Unsubscribe("t1", "http://127.0.0.1:1/9") || w.Unsubscribe("t1", "http://127.0.0.1:1/9") {
		t.Error("want it removed once")
	}
	w.DropToken("t1")
	if got := values.count(subscriptionKind); got != 0 || len(w.Report().Targets) != 0 {
		t.Errorf("%d subscriptions outlive their token", got)
	}
}
