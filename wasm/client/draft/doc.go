// Package draft is the unsent answer of one ask: what the person chose, wrote
// and skipped, which question is on show, and its stored form.
//
// It owns: the rules of editing, what counts as answered and as pristine, the
// batch that a submit sends, and the versioned record kept in local storage.
// It does not own: when to store, the countdown, or whether anything may be
// sent. Nothing in here ever leaves the client but through Batch.
//
// A draft is pristine while it equals what New gives: a recommended first
// option is selected, which is a suggestion and no answer. The page on show is
// not part of that. A skipped question keeps its text, so that the skip can be
// taken back.
//
// A record is used only if it fits the ask: same number of questions, an index
// in range, labels that are offered. Concurrency: none. Limits: projection's,
// with custom text kept up to KeptMax; a record's stubs are cut to StubMax.
package draft
