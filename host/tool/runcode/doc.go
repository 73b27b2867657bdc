// Package runcode is run_code: the tool by which a model runs a JavaScript
// program that calls the agent's other tools itself, many at once if it likes,
// and gives back only what the program returns.
//
// It owns: the tool, what a program can reach (prelude.js), its limits, and the
// recording of the calls that it makes. It does not own: the engine
// (wasm/quickjs), the tools, or how a call of one is run (loop.RunTool, the way
// of every call).
//
// # Calls of a program
//
// Each has a random call id of its own that the log does not know yet. When it
// has come back, tool/ptc-dispatch is recorded, and only when that is on disk
// does the program see the result. An ask that times out so is pending and can be
// answered late, like any other, whatever becomes of the program. A host that is
// killed before has recorded nothing of the call; the program's own call then
// gets an unknown outcome from repair.
//
// A program cannot call run_code. What needs a tool/call of its own in the log,
// as withdraw_question does, must not be among the tools given to New.
//
// Nothing outlives a program: when it ends, however it ends, calls that it did
// not wait for are cancelled, and the result comes after the last of them.
//
// # States of a program
//
//	running → waiting   nothing left to run, calls under way: the clock stands
//	waiting → running   a call is on disk
//	running → done, failed (an exception), timed out, out of memory, stuck
//	          (it waits for what nothing will settle)
//	any     → aborted   the turn was cancelled, or the agent stops
//
// Timed out and aborted exclude each other: the first cause wins. A stopping
// agent records nothing any more.
//
// Concurrency: runs are independent. A program runs on the goroutine of its Run;
// each call has one of its own, and Run waits for all of them.
//
// Limits: codeMax, Config.Timeout and TimeoutMax of running time, the engine's
// memory, callsMax calls of a program and parallelMax at once, argumentsMax of
// one call, outputMax of console output, resultMax of the result.
package runcode
