// Package card is the client's object for one ask: which channel an answer may
// take, the races of a submit, the countdown, and what is left when it ends.
//
// It owns one card's state. It does not own sessions, streams, storage or the
// list of cards: what a card wants done it asks of its [Shell], and what the
// log says it is told as a [Known]. Every input comes with the time.
//
// # Identity
//
// A keyed card (session and callId) is shared by the live request and the
// continued ask, whichever comes first. An unkeyed one (session and eventId)
// lives and ends with its waterfall.
//
// # States of a keyed card
//
//	open       listed open, or forwarded and not listed yet. Submits through
//	           its delivery; without one, submit is disabled
//	continued  listed continued. Submits by RPC; a delivery is delegated
//	queued     a reply sits in the inbox, ours or another's: not editable
//	ended      gone from the list with no delivery left. Kept only while it
//	           holds text that was neither recorded nor accepted
//
// Not known yet is not no longer listed: absence counts only when the list and
// the pending deliveries of this connection have both come (Known.Synced). A card that was never
// listed ends by remote/settled, or by a fresh snapshot without it.
//
// # Busy
//
//	sent      the answer left by the waterfall: not delivered until the list,
//	          or remote/settled, says so. → resend when the connection goes;
//	          → idle and "submit again" when the ask turns continued; → idle when refused
//	resend    goes again on the next delivery, or by remote/settle
//	rpc       userQuestions/answer is under way, or goes again under the same
//	          submission id when the connection is back
//	settling  another client settled it, or the record is being looked up
//
// A press is one submit: a second click while busy is nothing. An expiry and a
// cancellation are never sent twice by themselves; an answer is, because a
// person submitted it.
//
// Concurrency: none. Limits: the draft's; three tries of remote/settle; claims
// are opened again after 1 s, doubling to 30 s.
package card
