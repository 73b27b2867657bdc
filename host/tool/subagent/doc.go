// Package subagent is the tool with which an agent hands a piece of its work to
// another: a child with a session of its own, run to the end of its turn, whose
// last words are the result.
//
// It owns: the child's life (created, prompted, waited for, closed) and what the
// caller is told of it. It does not own: how the child works (agent/loop through
// the registry) or which tools it has (the composition root, which sees
// Agent.Owner).
//
// A child is created → prompted → settled → closed. Closed means that its agent
// is gone; its session stays, listed under parentSession. A cancelled call
// cancels the child's turn and waits for its end, so that the child's log is
// balanced when the caller's result is recorded. A child asks no person anything:
// its ask fails with DELEGATED_CALLER, because its owner is live.
//
// Concurrency: one Tool per agent; runs overlap.
//
// Limits: depthMax generations, childrenMax children of one agent at once,
// promptMax bytes of prompt; endGrace for a cancelled child to end its turn.
package subagent
