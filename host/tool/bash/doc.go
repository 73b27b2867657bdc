// Package bash lets an agent run shell commands: in the foreground with a
// deadline, or in the background without one.
//
// It owns: the three tools (bash, bash_output, bash_kill), every process their
// commands start until it has ended, the captured output, and the codes
// BASH_TIMEOUT and BASH_ABORTED.
//
// It does not own: permission to run a command, or a sandbox. A command may do
// what the host's user may do. It is not given the host's own secrets: API
// keys and MEANWHILE_ variables are left out of its environment.
//
// # A command's family
//
// Each command leads its own process group and carries a random mark in its
// environment. Its family is the group, all descendants, and whatever carries
// the mark: a child that called setsid has left the group, and one whose parent
// died is nobody's descendant, but both keep the environment. Only a process
// that does all three at once, new session, dead parent, cleared environment,
// gets away. (Elsewhere than on Linux there is no /proc, and the family is the
// group.)
//
// Ending a family is TERM, a grace, then KILL until nothing is left. The leader
// is not reaped before that, so its number cannot come to mean another process;
// the others are signalled through pidfds, for the same reason.
//
// # States of a command
//
//	running  → exited     by itself: what is left of its group is ended too
//	         → timed out  the deadline ended it (foreground)
//	         → aborted    the turn was cancelled (foreground)
//	         → killed     by bash_kill, or because the agent closed (background)
//
// Timed out and aborted exclude each other: the first cause wins. A command
// that ended by itself before either was noticed has just exited.
//
// After a foreground command ends by itself, what it left in its process group
// is ended, because nobody would read or stop it; what moved to a session of
// its own (an agent for keys, a build daemon) meant to stay and may.
//
// Nothing here outlives a host that stops; a host that is itself killed leaves
// its commands to run.
//
// Output, standard and error together, goes through a pipe of our own. A
// process that holds the pipe after the end costs drainTime and no more.
//
// Concurrency: everything may be called concurrently. One goroutine reads each
// command's output, one waits for its exit; both end with it.
//
// Limits: maxCommand bytes of command, Config.MaxOutput bytes of output kept
// (head and tail in the foreground, the newest in the background), MaxRunning
// background commands running, maxEnded ended ones remembered.
package bash
