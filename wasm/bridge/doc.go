// Package bridge runs client.wasm in the host, so that every ask and every
// answer is judged by the same bytes that the page runs.
//
// It owns: the embedded module and its hash, a bounded pool of instances, and
// the typed calls CheckAsk, CheckAnswer and Fold. It does not own the checks
// themselves (shared/projection, inside the module), nor what a refusal means.
//
// # Whose fault
//
// A *projection.Problem is the caller's: the document is not what it should be.
// An *Error is the host's: the module failed, twice, on two instances, or could
// not be started. Healthy then reports it until a later call succeeds.
//
// # Instances
//
// One owner at a time; made on demand, up to Options.Instances. After any error
// an instance is thrown away: it may go on answering after a panic. What goes in
// is bounded in bytes and in number of values before it reaches the module, and
// memory is bounded by pages, so a call ends by itself and needs no context: a
// context only bounds the wait for an instance.
//
//	none → idle ⇄ owned → closed (after an error, or Close)
//
// Concurrency: all methods at once, but Close after the last. Limits: the
// constants below.
package bridge
