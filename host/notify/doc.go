// Package notify tells people who are not looking that an agent asks.
//
// It owns what is said about an ask outside of the page, when, and to whom: a
// signed webhook, an ntfy topic and the browsers that subscribed to Web Push. It
// does not own asks (question), what a page shows by itself, or who may subscribe
// (remotes).
//
// # What is said
//
// One notification for each ask, named by its tag, which follows from session
// and call alone. Everything after the first carries the same tag and replaces
// it: a reminder when a fifth of the window is left (windows under a minute have
// none), a quiet line when the agent carried on, and a withdrawal when the ask
// settles. A reply that waits in the inbox counts as settled: there is nothing
// left to do. Unless Text is set, nothing of the question leaves the host: no
// header, no text, no option, only the agent's name and "1 question". With Text,
// long text goes out as its head and the link.
//
// # When
//
//	emitted ── Delay ──► announced ──► reminded ──► continued ──► settled
//	   └─ settled meanwhile: nothing was ever said, and nothing is
//
// A client that holds a claim may be a page in a hidden tab, so a claim is not
// visibility, and the wire tells no other. Two things stand in for it: the
// Delay, in which somebody at the page answers first, and the service worker,
// which shows nothing while a page of this host is in view and focused.
//
// A restart announces nothing: only an ask that goes out announces, and what was
// announced is kept in the store's value area until it is withdrawn.
//
// # Delivery
//
// At least once in order for each target, the newest per tag: what was not sent
// when something newer comes is dropped. Retries back off and end after maxTries
// or when the note is of no use any more. An answer of the 4xx kind is final. A
// subscription that is gone is removed. Every failure is logged and stays in
// Status until the next success; addresses are shown without path or query,
// which may hold a secret.
//
// Targets that the owner of the host configured may be anywhere; a redirect, and
// every push endpoint, which a browser named, must be a public address unless
// AllowPrivate is set. Redirects keep the method or are refused.
//
// # Web Push
//
// RFC 8030, 8188, 8291 and 8292 on the standard library alone: a hundred lines,
// checked with the vector of RFC 8291, weigh less than a dependency with a JWT
// library behind it.
//
// # Concurrency
//
// Safe for concurrent use. A settlement never waits for a target: it changes a
// map. Each target has one goroutine while it has something to send; Close ends
// them and waits. Limits are the constants of this package.
package notify
