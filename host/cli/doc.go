// Package cli is the command line of the program.
//
// It owns the subcommands, their flags, their output and exit codes. It does
// not own what they do: serve starts host/app, replay folds with
// shared/projection, check asks the client module, and the rest are calls to a
// running host over the socket in its data directory, which only the user
// who started it can open. That socket gives the scopes read, ask and admin;
// answer brings a token, for whoever can run a command could else answer itself.
//
// # Output
//
// What a script wants goes to stdout and nothing else does: the token alone,
// the link alone, the JSON alone. Everything for people goes to stderr. Text
// that came from an agent loses its control, escape and direction characters
// before it reaches a terminal.
//
// # Exit codes
//
//	0  done
//	1  it failed; stderr says why and what to do
//	2  the command line was wrong
//	3  the questions or the answer were refused
//	4  ask, await: not answered yet
//	5  ask, await: ended without an answer; answer: somebody else answered, or it is gone
//	6  verify: something is missing
//
// hook ends with 0 whatever happens: agents take other codes for a refusal of
// their tool.
//
// # Concurrency and limits
//
// One command runs at a time, in the caller's context. A line of a replayed
// file has at most maxLine bytes, a checked document maxDocument, and a call to
// the host takes at most callWithin.
package cli
