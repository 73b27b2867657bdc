// Package askuser is the tools by which an agent asks its user, has a plan
// approved and takes a question back: ask_user_question, submit_plan and
// withdraw_question.
//
// It owns: the two schemas, the reading of the arguments, the choice between a
// blocking and a timed ask, and every text that the model gets back.
//
// It does not own: the ask itself, its timing and its answers (host/question),
// the shape and the limits of a batch (shared/projection), or the recording of
// calls and results (the loop).
//
// Modes. Legacy has no timeout parameter and sends an unkeyed request that
// blocks; a timeout that a model sends all the same is an unknown member and
// has no effect. Timed has one: left out → Options.Default, -1 → blocks, keyed
// by the call id, 1…2147483 → seconds for the whole batch; anything else is an
// error that says what to send.
//
// A plan blocks in either mode, and only its own label approves it.
//
// Results are one JSON object: {"answers":[…]}, {"pending":true,"callId",
// "message"}, {"approved":true|false,"changes"?,"message"?} or
// {"withdrawn":true|false,"message"?}. The message of a pending
// result says that silence is neither a skip nor permission.
//
// Concurrency: a tool holds no state; runs are independent of each other. While
// the host stops a run gives no result and waits for its agent to stop, too, so
// that nothing is recorded; repair does that at the next start.
//
// Limits: those of projection (questions, options, characters, bytes); an ask
// over one of them is an error that names the field and never becomes a card.
package askuser
