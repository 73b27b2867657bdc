// Package llmtest is a local server that speaks chat completions over SSE as
// the real providers do, with switches for every fault they are known for. It
// is for tests of the adapters, the loop and the whole host; it never judges a
// request, it records it.
//
// It owns: the scripted replies, the recorded requests, and two listeners: a
// real port, and one in memory (Pipe) with which a test can run inside
// testing/synctest, where a stalled stream costs no real time.
//
// It does not own: what a client should make of a reply.
//
// A Reply is a list of steps, played in order; the builders (Text, Call, Done
// and so on) make well-formed ones. A reply that just ends without Done is
// what a server does that closes its body early. Requests beyond the scripted
// replies get status 500 and fail the test.
//
// Concurrency: everything may be used from any goroutine. Replies are handed
// out in the order of requests.
//
// Limits: maxBody bytes of a request.
package llmtest
