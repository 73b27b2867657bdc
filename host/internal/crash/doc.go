// Package crash kills the real program under load and looks at what it promised.
//
// It is tests only. A run starts the program (this test binary in its place, or
// the one that -binary names) on one data directory, lets askers and answerers
// at it over the Unix socket, WebSockets and POST, kills it with SIGKILL at a random instant or the moment it has
// confirmed something, and reads the directory before the next one starts:
//
//   - the store is whole (logstore.Verify) and each log is contiguous and
//     foldable (session.Check)
//   - each accepted answer is queued or admitted, exactly once, as it was sent
//   - each ask that its asker was told answered is recorded with that answer
//   - each prompt that was confirmed is queued or admitted, exactly once
//   - each admission that was confirmed is recorded
//   - no ask is settled twice, no text stands in a log that nobody submitted, and
//     one request id made one ask
//
// The next host must list no outside session as running (each cut turn was
// repaired), and must know the accepted answers when they are sent again, and
// take no second one.
//
//	go test ./host/internal/crash -run TestKill -kills 2000 -seed 1 -timeout 0
//
// A kill cannot show a missing fsync: the kernel keeps what was written. The
// power cuts of package logstore are for that.
package crash
