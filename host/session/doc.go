// Package session owns the session logs: who may append, what is on disk, and
// who is told of it.
//
// Owns: the life of a session (create, open, fork, rename, archive, delete),
// the order and durability of its events, the state folded from them, repair,
// the list of sessions, and the JSON lines of an export. Does not own: bytes on
// disk (Backend, implemented by logstore), what questions and the inbox mean
// (shared/projection), when a turn starts or ends (agent/loop).
//
// # A change
//
// Log.Update runs a decision on the staged state: everything accepted so far,
// on disk or not. What it returns gets seq and time, is folded, and is queued
// as one batch. Commit.Wait returns after the fsync. So decisions never wait
// for the disk, and nothing that came of one is told to anybody before it is
// there: Snapshot, Follow, Read and the list deliver durable batches only. A
// failed write is unknown; Options.Fatal is told, the process stops, and no
// later write is taken.
//
//	staged → queued → durable → delivered
//
// A decision must not block, keep the state or call the Log again. It may be
// run under a lock that others wait for.
//
// # Life of a log in memory
//
// Store.Open gives the one *Log there is while anybody holds it; once nobody
// does, the garbage collector takes it and the next Open reads it again from
// checkpoint and tail. A log read from disk has nobody driving it, so Open also
// repairs it. Whoever drives a turn must hold the *Log until the turn is over.
//
// A damaged log (Log.Damage is set) can be read, listed and followed up to the
// fault, forked from what is readable, and deleted; Update returns ErrDamaged.
// It never stops other sessions. Damage that the backend did not find is found
// when the log is first read. Listing reads none but those whose lists were not
// written since they changed: while there are many, one change in some is.
//
// # Wire shapes
//
// Item, for session/follow, is one of
//
//	{"header":{…},"seq":n,"projections":{"userQuestions":{…},"inbox":{…},"replies":[…]}}
//	    first. seq is the last event in the projections, -1 in an empty log. The
//	    projections are projection.Set.AppendState: userQuestions has at least
//	    active and settled, inbox is {"next-step":[message],"next-turn":[message]}
//	{"events":[…],"seq":n}
//	    history, bounded chunks of events up to the first item's seq; they are
//	    in the projections already. seq is the last one's
//	{"events":[…],"changes":{…},"seq":n}
//	    one batch on disk, applied whole: first changes to the projections, as
//	    projection.Delta.Append writes them, {} when there are none
//	    (a new title or archive mark comes by the list, not here)
//	{"preview":{"turn":t,"step":s,"text":"…"}}
//	    unfinished model text. text is what came since the follower's last
//	    preview of that turn and step; its first has everything so far
//
// ListItem, for host/follow, is first {"sessions":[Row]}, oldest session first,
// then {"upsert":[Row],"removed":[id]} with either part left out when empty. An
// upsert replaces the whole row. One row changed many times may come once.
//
//	Row {"id","title","status","agent":{"kind","name"?,"cwd"?},"seq",
//	     "active":[{"callId","questions":[…],"state":"open"|"continued"}],
//	     "queued":[{"id","target":"next-step"|"next-turn","callId"?,"text"?}],
//	     "createdAt","updatedAt","archived"?,"parentSession"?,"partial"?,"note"?}
//
// status is "new" (no turn yet), "running", the kind of the last turn's end
// ("completed", "aborted", "error", "max-tokens", "blocked", "interrupted") or
// "damaged". active and queued are complete, in order, unless "partial":true
// says that they were cut to rowEntries or rowBytes; what a cut list leaves out
// is not known, rather than not there. callId and text stand on replies only:
// the ask answered and the reply's JSON. note is volatile, set by SetNote.
//
// # Concurrency
//
// All methods may be called at once. A Log has two locks that are never held
// together: one for staged state, one for delivery. Backend callbacks take only
// the second, so a slow decision does not delay other sessions. A follower has
// no goroutine of its own: Follow runs on the caller's.
//
// # Limits
//
// See the constants: maxChangeBytes and maxChangeEvents a change, ringBatches and
// ringBytes a follower may lag before ErrLagged, chunkEvents a history item,
// rowEntries and rowBytes a row, maxTitle and maxHeader a header, lineMax an imported line.
package session
