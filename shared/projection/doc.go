// Package projection folds a session's events into the state that people and
// agents act on, and checks asks and answers. It is pure: the same code runs in
// the host, in the browser's module and in the command line's replay.
//
// It owns the reading of an ask's arguments ([ParseAsk], [QuestionsOf]), the
// checks ([CheckAsk], [CheckAnswer]) and three folds over the log:
//
//   - [UserQuestions]: which asks are open or continued, which are settled and
//     with what, and which withdrawals run.
//   - [Inbox]: the two queues of messages that the agent has not read.
//   - [Replies]: the fate of every late answer, by message id.
//
// [Set] applies all three and [Delta] says what a batch of events changed.
// Nothing here is stored a second time: a checkpoint is these values encoded,
// and a checkpoint or wire value that is not exactly of this build's shape is
// refused, to be rebuilt from the log.
//
// A fold is a value with one owner, changed in place; an event that says
// nothing to it leaves it untouched. Cost per event depends on the event alone,
// never on the length of the log. Inherited events (seq < inheritedEventCount)
// change nothing: a fork does not inherit its parent's questions or queue.
//
// States of an ask in UserQuestions: none → open (a valid timed call) →
// continued (pending, or outcome unknown) → settled (answers recorded or a reply
// admitted) or gone (any other result, or withdrawn). A sub-call enters as
// continued. An ask made again under its id moves to the end, open.
package projection
