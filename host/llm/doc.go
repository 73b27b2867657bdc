// Package llm is the provider-neutral shape of a model call: the request, the
// chunks of the streamed response, the accumulator that turns chunks into one
// assistant message, and the errors callers branch on.
//
// It owns: these types and the rule of completeness. A response is complete
// when its Finish chunk came and not before; whatever ends a stream earlier is
// an error, and a tool call whose arguments were cut is never handed out.
//
// It does not own: HTTP, SSE or any provider's JSON (host/llm/chat and the
// adapters over it), recording (host/agent/loop), or deadlines around a whole
// turn.
//
// States of an Accumulator: open (chunks come) → finished (one Finish chunk
// came). A chunk after finished is an error of the provider.
//
// Concurrency: a Provider may be streamed from concurrently; one stream and
// one Accumulator belong to one goroutine.
//
// Limits: MaxText bytes of text and reasoning and MaxArguments bytes of
// arguments in one response, MaxCalls tool calls.
package llm
