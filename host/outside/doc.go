// Package outside serves agents that live in other programs: they open a
// session, ask in it, wait in pieces, take their late answers and say that they
// have read them. MCP, HTTP, the command line and hooks are doors to it.
//
// It owns: the calls of an outside agent and how long each one holds, which
// request id stands for which ask, and which results and replies an agent was
// handed but has not acknowledged. It does not own: asks and their deadlines
// (host/question), the log's turns and the leases on queued messages
// (agent.Passive), wire names (host/remotes).
//
// # Two numbers
//
// The question's window runs in the question service, whoever waits. A call's
// hold is how long this one call stays open. A call that ends — hold over, cut,
// cancelled, disconnected — ends nothing else. So an ask is
//
//	starting → open → settling → closed
//
// starting: its call is being recorded and sent out. open: people can answer in
// the foreground. settling: the outcome is known and being recorded. closed: the
// log says the rest; a continued ask may still get a reply.
//
// When an answer comes in the window and a call holds the ask, it is recorded as
// the call's result. When none holds it, a pending result and the queued reply
// are recorded in one batch, so the answer waits where late answers wait. Which
// of the two is decided once, under the desk's lock, when the outcome arrives.
//
// # Handing over
//
// A queued reply is leased to the holder that was handed it, for LeaseFor or
// until the connection that carried it ends; a result that nobody acknowledged
// is handed over the same way by Claim. What was handed over is acknowledged by
// Admit, or when the same holder calls again after the response that carried it
// was written whole. An acknowledged reply is admitted into the log; an
// acknowledged result is only forgotten here, for it is recorded already.
// Otherwise it is handed over again, under the same message id.
//
// What is known of results lives in memory. After a restart the asks are read
// from the log again, and the answers of its last turn count as unacknowledged.
//
// # Concurrency and limits
//
// Everything is safe for concurrent use. A desk's lock is held for map work and
// nothing else. No goroutine waits for an open ask: one runs for each call that
// holds, briefly for each settlement, and for each connection that was handed
// something. See the constants for the limits.
package outside
