package config

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// Behind a proxy that ends TLS the host answers to the name and the origin that
// browsers see.
func TestPublicURL(t *testing.T) {
	c, err := Load(Sources{Env: envOf("HOME", "/home/ada"), Flags: map[string]string{
		"http.public_url": "https://Box.example:8443/", "http.hosts": "other", "http.origins": "https://other",
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.HTTP.Hosts, []string{"other", "box.example:8443"}; !slices.Equal(got, want) {
		t.Errorf("hosts %q, want %q", got, want)
	}
	if got, want := c.HTTP.Origins, []string{"https://other", "https://box.example:8443"}; !slices.Equal(got, want) {
		t.Errorf("origins %q, want %q", got, want)
	}
	if got, want := c.HTTP.PublicURL, "https://box.example:8443"; got != want {
		t.Errorf("public URL %q, want %q", got, want)
	}
}

func TestNotifyRefusals(t *testing.T) {
	for _, tc := range []struct{ key, value, fix string }{
		{key: "http.public_url", value: "box.example", fix: "write https://name"},
		{key: "http.public_url", value: "https://box.example/inbox", fix: "without a path"},
		{key: "http.public_url", value: "https://u:p@box.example", fix: "write https://name"},
		{key: "notify.webhook", value: "ftp://x", fix: "is not an address"},
		{key: "notify.webhook", value: "https://hook.example", fix: "MEANWHILE_NOTIFY_WEBHOOK_SECRET"},
		{key: "notify.ntfy", value: "https://ntfy.example/", fix: "names no topic"},
		{key: "notify.text", value: "maybe", fix: "is not a switch"},
		{key: "notify.delay", value: "-1s", fix: "is not a duration"},
		{key: "notify.contact", value: "me@example.org", fix: "write mailto:"},
	} {
		_, err := Load(Sources{Env: envOf("HOME", "/home/ada"), Flags: map[string]string{tc.key: tc.value}})
		var bad *Error
		if !errors.As(err, &bad) || bad.Key != tc.key || !strings.Contains(bad.Fix, tc.fix) {
			t.Errorf("%s = %q: got %v, want a refusal that says %q", tc.key, tc.value, err, tc.fix)
		}
	}
	// A secret is not shown.
	c, err := Load(Sources{Env: envOf("HOME", "/home/ada", "MEANWHILE_NOTIFY_WEBHOOK_SECRET", "s3cret"), Flags: map[string]string{"notify.webhook": "https://hook.example"}})
	if err != nil || c.Notify.WebhookSecret.Reveal() != "s3cret" || c.Notify.WebhookSecret.String() == "s3cret" {
		t.Errorf("secret %v, error %v", c.Notify.WebhookSecret, err)
	}
}
