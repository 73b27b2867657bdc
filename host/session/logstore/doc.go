// Package logstore keeps session logs in a goleveldb database. It implements
// session.Backend.
//
// Owns: the key layout (keys.go), the grouping of all sessions' batches into
// synced writes (group.go), the opening of a database that may be damaged
// (open.go, verify.go), the directory lock, and the fsync of the directory
// that goleveldb leaves out (storage.go). Does not own: what an event, header
// or summary means. It is the only package that imports goleveldb.
//
// # A write
//
// queued → written in a group → synced → done(nil). One goroutine takes
// everything that is queued, up to groupMax bytes, writes it as one database
// batch with one fsync and calls done in order; while it syncs the next group
// gathers. The first error is final: its batches get it, every later batch is
// refused with it, and nothing is written any more, because goleveldb would
// acknowledge and lose what follows a failed sync. The process is to stop.
//
// # Opening
//
// First with every check of goleveldb on. If that finds corruption (also the
// ordinary torn end of a killed process), the directory is copied aside and
// opened leniently; then every record's checksum, each log's sequence and the
// tally (how many sessions and events there are) are checked. Nothing missing:
// the copy is removed. Otherwise the copy stays with a report in it, each
// damaged session is marked, and Report says what is missing. Nothing is
// dropped to make it fit. A journal with whole records behind a bad place is no
// torn end: it is reported, and the copy stays. If even the lenient open fails,
// the copy stays and the error names it, unless the store is still as it was.
//
// # Copies
//
// Backup writes a snapshot with its checksums and tally while writing goes on;
// Restore builds a store from one beside its place and renames it there once it
// is verified. Verify reads every record and says what is missing.
//
// # Concurrency
//
// All methods may be called at once. done runs on the writer's goroutine.
// Reads take a short iterator and never hold one between calls.
//
// # Limits
//
// queueMax bytes queued (Write blocks beyond), groupMax bytes a group and
// writeBuffer bytes of memory table; a session's change is bounded by package
// session to half a memory table, since larger batches would bypass the
// journal. asideMax copies aside; then the open is refused until they are
// moved away.
package logstore
