// Package remotes is what this host exposes to its clients: it binds the
// owners of sessions, agents, questions and tokens to names of the wire.
//
// It owns the method names, the shapes of their params and results, who needs
// which scope, and the codes of errors on the wire: Wire is the one place that
// assigns them. It owns no state and decides nothing: each method decodes,
// calls one owner and encodes. Params are decoded strictly; an unknown, missing
// or wrong member is named in the error.
//
//	session/create      admin   {title?, cwd?, text?, messageId?} → {sessionId, messageId?}
//	session/send        admin   {sessionId, text, messageId?} → {messageId}
//	session/cancel      admin   {sessionId, reason?} → {cancelled}
//	session/continue    admin   {sessionId} → {}
//	session/fork        admin   {sessionId, at?, title?} → {sessionId}
//	session/rename      admin   {sessionId, title} → {}
//	session/archive     admin   {sessionId, archived?} → {}
//	session/delete      admin   {sessionId} → {}
//	host/follow         read    stream, see package session
//	session/follow      read    {sessionId, after?} stream, see package session
//	userQuestions/attachWait  answer  {sessionId, callId} stream of one {remainingMs}
//	userQuestions/answer      answer  {sessionId, callId, answer, submissionId} → {accepted, messageId?, state?}
//	inbox/remove        answer  {sessionId, messageId} → {removed}
//	token/create        admin   {label, scopes} → {token, id}
//	token/list          admin   {} → {tokens:[{id, label, scopes, createdAt, login?}]}
//	token/revoke        admin   {id} → {}
//	login/create        admin   {} → {url}
//
//	session/open           ask  {title?, agent:{kind:"external", name, cwd?}, key?, existing?} → {sessionId}
//	userQuestions/ask      ask  {sessionId, requestId?, questions, timeout?, holdMs?, holder?} → standing
//	userQuestions/await    ask  {sessionId, callId, holdMs?, holder?} → standing
//	userQuestions/withdraw ask  {sessionId, callId} → {withdrawn}
//	inbox/claim            ask  {sessionId, holder?, max?} → {messages, leaseMs}
//	inbox/admit            ask  {sessionId, messageIds} → {admitted}
//
// A standing is {status:"answered", callId, answers, messageId?} (messageId is
// what inbox/admit acknowledges), {status:"pending", callId, remainingMs,
// shown?} or {status:"waiting", callId}.
//
// A message sent again under the messageId of one that waits or was read
// is the same message. Without a messageId each call is a message of its own.
//
// # Concurrency
//
// Everything here may run at once; the owners look after themselves. Streams
// run on the goroutine that the gateway gave them and end with it.
package remotes
