package app

import (
	"cmp"
	"net/url"
	"strings"
	"time"

	"meanwhile/host/notify"
)

// notifyOptions binds notifications to the services that are still to be made:
// nothing is asked before the listener is open, and that comes last.
func (a *App) notifyOptions() notify.Options {
	n := a.cfg.Notify
	contact := cmp.Or(n.Contact, a.cfg.HTTP.PublicURL)
	if n.Contact == "" && !strings.HasPrefix(contact, "https://") {
		contact = "mailto:meanwhile@localhost" // some push services refuse this one
	}
	return notify.Options{
		Values: a.sessions.Values(), Sessions: a.sessions, Live: a.tokens.Live,
		Remaining: func(sessionID, callID string) time.Duration {
			w, ok := a.questions.Lookup(sessionID, callID)
			if !ok {
				return 0
			}
			return w.Remaining()
		},
		Link: func(card string) string {
			if a.address == nil { // an agent that goes on before the listener is open
				return cmp.Or(a.cfg.HTTP.PublicURL, "http://"+a.cfg.Listen) + "/"
			}
			if card == "" {
				return a.pageURL() + "/"
			}
			return a.pageURL() + "/#/card/" + strings.ReplaceAll(url.QueryEscape(card), "+", "%20")
		},
		Webhook: n.Webhook, WebhookSecret: n.WebhookSecret.Reveal(), Ntfy: n.Ntfy, NtfyToken: n.NtfyToken.Reveal(),
		Text: n.Text, Delay: n.Delay, AllowPrivate: n.AllowPrivate, Contact: contact, Log: a.log,
	}
}
