// Package metrics counts what the host does, in the form Prometheus reads.
//
// It owns the names and buckets of the numbers and is the only package that
// imports the Prometheus client. It does not own what it counts: the owners tell
// it (Settled, Landed, Synced), or are asked when somebody reads (Sources). It
// holds no text of a question, an answer or a title, and no id is a label, so
// that what reads metrics learns nothing but numbers.
//
//	meanwhile_ready                       1 while asks and answers are taken
//	meanwhile_clients                     clients connected
//	meanwhile_sessions{status}            sessions by the status of their row
//	meanwhile_asks_open                   asks that block now
//	meanwhile_asks_continued              asks to be answered late
//	meanwhile_messages_queued             messages and replies no agent has read
//	meanwhile_asks_total                  asks that went out
//	meanwhile_replies_accepted_total      late answers accepted
//	meanwhile_replies_admitted_total      late answers that an agent read
//	meanwhile_ask_seconds{outcome}        from the ask to its result; outcome is
//	                                      answered, pending or failed
//	meanwhile_admission_seconds           from an accepted late answer to its admission
//	meanwhile_sync_seconds                one write to disk with its fsync
//	meanwhile_sync_batches                changes that shared it
//	meanwhile_sync_bytes_total            bytes of them
//
// beside the client's own numbers of the process and the Go runtime.
//
// # Concurrency and limits
//
// All methods may be called at once; Landed and Synced run on the goroutine that
// writes to disk and never wait. Asks and messages of one session are counted as
// far as its row lists them, see package session. Replies under way are
// remembered for their latency up to underWayMax; past that samples are lost,
// counts are not. At most readersMax read at once.
package metrics
