// Package agent is the registry of live agents and what anyone may ask of one:
// steer it, send it a message, cancel or continue its turn, take a message back.
//
// It owns: which agents are live and who owns whom; the life of their drivers;
// the leases under which outside agents hold messages; and the passive driver,
// which records what an outside agent does.
//
// It does not own: the log (host/session), the order of the queues
// (agent/inbox), the turn of a built-in agent (agent/loop, a Driver from the
// outside), or questions. A session row shows Status; the words are the page's.
//
// An agent is opening (its log is read, a turn that nobody drives any more is
// closed as repair does it, and its driver is made) → live (listed, its
// driver started) → closing (no longer listed, its driver is stopping) → gone.
// At most one agent exists for a session at any time: who asks for it while it
// opens or closes waits. Live means the exact instance: an *Agent kept from
// before a close is not live, though a new one has its id. An owned child closes
// with its owner; who owned it is not in the log, so after a restart the same
// session is a root.
//
// Delivery: Steer and Send return when the message is on disk, then wake the
// driver. A message never gets lost between a turn that ends and a steer: both
// run under the log's lock, so either the turn takes it or the driver, woken
// after, finds the turn over and starts another. A caller whose context ends
// early leaves the message where it is: it may still be recorded, and the
// driver is woken all the same.
//
// Concurrency: everything is safe for concurrent use. The registry's lock is
// held for map work only, never while a log or driver is called, so a driver or a
// tool may ask IsLive at any time. The leases' lock is taken inside a log's
// Update and takes no other. Goroutines: one for each agent that opens or
// closes, waited for by Close; those of a driver are its own.
//
// Limits: OpenCallsMax open calls of one outside agent; LiveMax agents; beyond IdleMax, those that have been idle for IdleAfter
// close, the longest unused first.
package agent
