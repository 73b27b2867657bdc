// Package machine is the one machine behind the module's exports: Step(now,
// input) gives effects, View draws, Next says when time matters.
//
// It owns: the set of cards and which session each belongs to, the streams it
// asks the page to keep open, what storage holds, and the announcements. What a
// card does is in package card, what a transcript shows in package transcript.
// It does no I/O, reads no clock and draws no random number: submission ids are
// the page's nonce and a count.
//
// # What is known of a session
//
// The session list (host/follow) serves every session. For a followed one its
// own fold serves once it has caught up with the first item of its stream, and
// until the stream ends; then the list again. A list row that was cut says
// nothing of what it leaves out. Nothing is known before the first list of a connection, and
// nothing ends before remote/synced has come too.
//
// # Connection
//
// "down" ends every call, stream and delivery but for calls by POST. On "up"
// the machine opens host/follow and session/follow again, with after where it
// has a log, and lost late answers go again under their ids.
//
// A reload forgets the press that was under way: the draft is back and marked as
// sent, nothing goes out by itself, and if the ask is gone its record says
// whether that submission was the one recorded.
//
// # Order in a step
//
// Time passes first (so an expiry comes before an edit at the same instant),
// then the input acts, then cards that ended are put away, then arrivals are
// told, then a reload for another build is asked for if nothing is at stake.
//
// Concurrency: one owner, one call at a time. Limits: the constants of
// machine.go; calls under way are bounded by cards and followed sessions.
package machine
