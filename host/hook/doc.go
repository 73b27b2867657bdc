// Package hook speaks to coding agents through the commands that they run at
// points of their own loop: it puts the question of an agent's native question
// tool to people, and hands late answers to the agent.
//
// It owns: the dialects (which event of which agent means what, and the exact
// shape that each one reads), the words that an agent gets, and a note of what
// it handed over. It does not own asks, replies or their leases (host/outside,
// by the calls session/open, userQuestions/* and inbox/*), or how an agent's
// configuration comes to name the command (host/install).
//
//	moment     meaning                        what is written
//	asking     a native question tool runs    the answers, or a refusal that says why
//	working    a tool, or a batch, returned   late answers as context
//	prompting  a person sent a prompt         the same
//	starting   a session starts or resumes    the same
//	stopping   the agent is about to end      late answers as the reason to go on
//
// Nothing to say is no output. Every fault of ours is silence too: an agent must
// not stumble over a hook. Run reports it to Options.Debug alone.
//
// # Asking
//
// The native call's own id is the request id, so a hook that is run twice for
// one call meets the same ask. An answer in the window goes back as the tool's
// input where the agent allows that (Claude Code), else as the reason of a
// refusal that carries it. A window that ends becomes a refusal that names the
// ask. A call with the questions of an ask that is still open does not ask
// again: it says that the first one stands.
//
// # Handing over
//
//	queued → handed over → written → noted → acknowledged
//
// A hook is a process of its own, so its connection, and with it the host's
// lease, ends as soon as it wrote. What it wrote is noted in a file per agent
// session, and the next hook of that session acknowledges what is noted: the
// agent has gone on since. A hook that is killed before the note is written
// leaves the messages queued, and they are handed over again under the same
// ids. One hook of a session hands over at a time (a lock on the note); others
// that run beside it stay silent.
//
// A message over the agent's limit for context is announced with the command
// that reads it, and that command acknowledges it. It is announced again only
// when a prompt comes or a session starts, not after every tool.
//
// # Concurrency and limits
//
// Run is one goroutine and has no state but the note's file. See the constants
// for limits. Hooks of an agent's helpers, and of other programs that run this
// agent's configuration, are silent: they would swallow what belongs to it.
package hook
