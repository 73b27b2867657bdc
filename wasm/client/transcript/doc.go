// Package transcript is the view of one followed session: its events as turns of
// nodes, with what folds away, and the states of its ask rows.
//
// It owns the fold of a session's events on this client (shared/projection's
// and its own), the numbering of turns and revisions, and which disclosures are
// open. It does not own streams, resuming, or cards; it is told which asks have one.
//
// # Folding
//
// A turn shows its leading user messages, then its own disclosure, then the
// rest; runs of process content (reasoning, tool rows, ask rows, replies) stand in
// groups with a disclosure of their own. Text between tool calls folds with the
// turn; its last text, and messages a person typed meanwhile, do not. A reply
// that opens the turn comes after the disclosure, for it is process content. A
// disclosure is open while its turn runs and closed afterwards, unless the person chose.
//
// # Ask rows
//
// The projection speaks first, the recorded result second. A call id that
// stands twice, or is missing, and answers that do not pair with the questions
// by id, are ambiguous: a count and no panel.
//
// A reply is known by its source alone. Revisions only grow; a view asked since a
// revision holds the turns that changed after it.
//
// Concurrency: none. Limits: TurnsMax, NodesMax and BytesMax, beyond which the
// oldest turns are dropped; one turn alone may exceed the last two.
package transcript
