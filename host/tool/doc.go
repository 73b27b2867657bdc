// Package tool is the vocabulary between the agent loop and the things an
// agent can do: a tool's description, one call of it, its result or its error,
// and the set of tools one agent has.
//
// It owns: the types, the rules a tool's name and schema must meet, and the
// guard around a run (an unknown name and a panicking tool become errors the
// model can read).
//
// It does not own: recording calls and results (host/session through the
// loop), deadlines (each tool has its own), or which tools an agent gets (the
// composition root).
//
// Concurrency: a Registry is immutable once built and may be read from
// anywhere. A Tool must allow concurrent runs.
//
// Limits: a tool name has 1 to 64 characters of [a-zA-Z0-9_-], because every
// provider refuses others; MaxTools tools in one registry.
package tool
