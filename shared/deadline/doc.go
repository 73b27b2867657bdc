// Package deadline tells work when to stop and tells afterwards why it
// stopped.
//
// It owns: the typed reason of a timeout (Reason), the arithmetic of a
// requested timeout (Clamp), a context that ends by its parent or by its own
// timer (New), the question which of the two it was (Of), and a timer that
// counts only while a stream is being waited for (Watchdog). The countdown an
// answering client shows is in shared/deadline/countdown, apart, because the
// client module cannot afford context and time.
//
// It does not own: stopping anything. A context only notifies; killing a
// process, closing a body or dropping a connection is up to the capability
// that started it. Nor does it own defaults, maxima or codes: those belong to
// the capability as well.
//
// There is no service and no state across calls.
//
// # One outcome
//
// The first cause of a context wins for good, so work is either timed out or
// aborted, never both. Of recognises only the codes it is asked for: the
// timeout of an outer piece of work is, to an inner one, a cancellation.
//
// # States of a Watchdog
//
//	idle     no Next outstanding: no timer
//	armed    one Next outstanding: the timer runs, a Pulse starts it over
//	fired    the timer ran out: the context is cancelled for good
//	stopped  Stop was called: the context is cancelled for good
//
// Concurrency: a Watchdog may be pulsed and stopped from any goroutine; only
// one Next may be outstanding. Timers come from package time, so
// testing/synctest drives them.
package deadline
