// Package loop drives a built-in agent: it asks the model, runs the tools it
// calls, and records every bit of it before anything follows from it.
//
// It owns: the turn/step machine (Machine, pure), the model's history (a fold of
// the log), what each step records, and the shell around them (Driver). It does
// not own: the log, the queues (agent/inbox), the model (host/llm), what the
// tools do, or anything about questions: to the loop an ask is a tool call.
//
// A turn is idle → opening → asking → working → bounding → asking … → closing →
// idle; machine.go says when each phase is entered and left. Its batches:
//
//	turn/start, admissions, step/start, request/header?   opens a turn
//	assistant/message                                      a reply
//	tool/call                                              before the tool runs
//	tool/result                                            as each comes back
//	step/end, admissions, step/start, request/header?      goes on
//	step/end, turn/end                                     or ends
//
// An admission is the splice that takes messages out of the queue and their
// user/message events. Whether a turn goes on is decided under the log's lock,
// on all that was recorded before, so a message steered at the last moment is
// either taken in or finds the turn ended and starts another.
//
// A turn starts: by a message that arrives while none runs; at the end of a turn
// that completed, when messages wait; when the agent comes to life, when
// messages wait and the last turn was not cut short (agent.Resumes); and by
// Continue. After a turn that was aborted or failed, messages queued before that
// wait for the next one that arrives. Without a model nothing is recorded, the
// messages stay, and Status says what is missing; Wake tries again.
//
// Cancelling cancels the contexts of the model call or the tools, with
// agent.ErrCancelled as the cause, and waits for the results that the tools give;
// one that gives none within Options.Grace gets an unknown outcome. Stopping
// cancels with agent.ErrStopping and records nothing any more.
//
// Concurrency: one goroutine for each running turn owns machine and history and
// is the only writer of the turn's events; a model call and each tool run have a
// goroutine that ends in one note to it. All are waited for by Stop. Previews of
// text are best effort and never recorded.
//
// Limits: Bounds (steps of a turn, calls of a reply, calls at once), ReplyMax
// bytes of one reply, ResultMax bytes of one result. Beyond them: the turn ends
// as an error, the call is answered unrun or waits, the result is cut and says so.
package loop
