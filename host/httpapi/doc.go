// Package httpapi is the HTTP API for programs without a library of ours: a
// session, an ask, a long poll, an answer, each one request.
//
//	POST   /api/v1/sessions                                     ask     open one, or find it by its key
//	GET    /api/v1/sessions                                     read    list them
//	GET    /api/v1/sessions/{sessionId}/events                  read    follow one, as server-sent events
//	POST   /api/v1/sessions/{sessionId}/asks                    ask     ask, and hold for the answer
//	GET    /api/v1/sessions/{sessionId}/asks/{callId}           ask     hold for the answer again
//	DELETE /api/v1/sessions/{sessionId}/asks/{callId}           ask     take it back
//	POST   /api/v1/sessions/{sessionId}/asks/{callId}/answer    answer  answer it, in time or late
//	POST   /api/v1/sessions/{sessionId}/inbox/claim             ask     take what waits for the agent
//	POST   /api/v1/sessions/{sessionId}/inbox/admit             ask     say that it was read
//	GET    /api/v1/openapi.json                                 –       this API as OpenAPI 3.1
//	GET    /api/v1/schemas/{name}.json                          –       one of its JSON Schemas
//
// It owns the paths, the bodies and the shape of its errors (RFC 9457). It does
// not own what they do: each request is one call of the wire, made for the
// request's token, with the wire's own scopes, checks and codes. Only following
// reads the store itself, because a stream needs a socket there.
//
// # Idempotency
//
// Idempotency-Key is the request id of an ask: the same key with the same
// questions is the same ask, for as long as its session lives. On an answer it is
// the submission id. Without it each request stands for itself.
//
// # Answering
//
// An open ask is settled through its event, as any client's answer is, and the
// first answer wins. A continued one takes a late answer. An ask that changes
// from one to the other while it is answered is looked at again, answerTries
// times; then the request is refused and nothing is lost.
//
// # Events
//
// "snapshot", "events" and "preview" are the items of session/follow (package
// session has their JSON). The id of an event is the seq of its last one on
// disk, so Last-Event-ID, or ?after=, goes on behind it. Each connection begins
// with a snapshot, which has no id. A comment every keepAlive keeps
// intermediaries from cutting the stream, and ends one whose token was revoked.
//
// # Concurrency and limits
//
// Requests are independent. Bodies have at most bodyMax bytes, an
// Idempotency-Key keyMax. A request that holds ends with its connection; the ask
// goes on.
package httpapi
