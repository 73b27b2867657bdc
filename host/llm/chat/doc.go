// Package chat is the chat-completions protocol over server-sent events, as
// every provider with an "OpenAI-compatible" endpoint speaks it, each with its
// own departures. The deepseek and openai packages are this client with their
// settings.
//
// It owns: the request and response JSON, the SSE parser, how tool-call deltas
// are told apart, what completes a stream, the two time limits of a stream,
// and retries.
//
// It does not own: API keys beyond sending them, the conversation, or the
// deadline of a turn.
//
// # What completes a response
//
// A finish reason does; nothing else. The stream is then read on, for at most
// tailTime, because usage may come after it and a second finish chunk may come
// too; [DONE], the end of the body, an error or the end of that time all end
// it well. Before a finish reason, [DONE] and the end of the body are a cut.
//
// # Time
//
// Two watchdogs guard the wait for the provider, never the time the consumer
// takes. The idle limit starts over at every line, a comment or an empty event
// included: queued requests send comments for minutes. The progress limit,
// longer, starts over only when a chunk is yielded, so that a connection that
// is kept alive for ever without an answer ends too. Either closes the
// response body and is an error of kind LLM_IDLE_TIMEOUT.
//
// # Retries
//
// Only before the first chunk was yielded, because a model that began to speak
// would otherwise say things twice; only for what may pass (no connection,
// 408, 429, 5xx, a cut before anything came); at most Config.Retries times with
// growing, jittered pauses. A Retry-After is obeyed up to maxPause; a longer
// one is handed to the caller at once, inside the error.
//
// # Tool calls
//
// Deltas belong to the call their index names, but for: no index (the last
// call, or a new one when a new id and name come), and two calls at one index
// (a new id with a name begins another). Chunks carry our own stable index.
//
// The key appears in the Authorization header and nowhere else: redirects are
// not followed, and it is removed from the provider's own error texts.
//
// Concurrency: a Client is immutable and may stream concurrently.
//
// Limits: maxLine and maxEvent bytes, maxErrorBody bytes of an error response,
// maxErrorText of it in a message; the rest is bounded by llm.Accumulator.
package chat
