// Package inbox moves messages through an agent's two queues: into them, out of
// them unread, and out of them into the conversation.
//
// It owns: the drafts that do so, the order of admission, and the leases under
// which an outside agent holds a message it was handed but has not admitted.
//
// It does not own: the queues themselves, which are a fold of the log
// (projection.Inbox), or the log. Every function reads the queues and returns
// drafts; the caller runs it inside one session.Log.Update, so what it decided
// on is what the log holds.
//
// A message is queued (spliced in) → admitted (spliced out and recorded as
// user/message, in one batch) or discarded (spliced out as canceled). A lease is
// no state of the message: it only says that a person may not discard it and
// that no other holder is handed it, until it ends or the message is admitted.
//
// Order: a turn begins with every next-step message and then one next-turn
// message; a step boundary within a turn takes every next-step message.
//
// Concurrency: none. Leases have one owner, who brings the time.
//
// Limits: QueueMax messages wait in one session, each of at most MessageMax
// encoded bytes; one admission takes at most AdmitMax bytes, and always one
// message, so that it fits into one batch; the rest follows at the next boundary.
package inbox
