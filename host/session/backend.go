package session

import "fmt"

// Backend keeps the bytes of all sessions. It knows no event type: it stores,
// under each session, numbered events and four records (header, summary, what
// is pending, checkpoint), and beside the sessions a small set of keyed values.
//
// logstore implements it on disk, sessiontest in memory; sessiontest.Contract
// is the suite that both pass.
type Backend interface {
	// Write queues one batch, which becomes durable whole or not at all.
	// done is called exactly once, with nil after the batch is on disk, in the
	// order of the Write calls. After the first error the backend refuses every
	// later batch with an error: a failed write is unknown, and writing past it
	// could bury it. Write may block while too much is queued. done may run
	// inside Write; it must neither block nor call the backend.
	Write(b Batch, done func(error))

	// Sessions calls fn for every session, in the order of their ids. It reads
	// no events and no checkpoints.
	Sessions(fn func(Record) error) error

	// Load reads one session's record with its checkpoint. ErrNoSession when
	// there is none.
	Load(id string) (Record, error)

	// Events reads the events from, from+1, … of a session: at most max of
	// them and about a megabyte, fewer only at the end. It returns *Fault,
	// beside the events before it, at the first event that is missing or does
	// not match its checksum. Only durable events are seen. The bytes are the
	// caller's.
	Events(id string, from int64, max int) ([][]byte, error)

	// Get reads one keyed value, nil when there is none.
	Get(kind, key string) ([]byte, error)
	// Each calls fn for all values of one kind in key order. fn must not call
	// the backend.
	Each(kind string, fn func(key string, value []byte) error) error

	// Close waits for the queued batches and releases what the backend holds.
	Close() error
}

// Stage says what a batch does to the life of its session.
type Stage uint8

const (
	// StageAppend adds to a session that exists, or touches only values.
	StageAppend Stage = iota
	// StageBuild adds events to a session that is not there yet: it is listed
	// nowhere, and its events go if the process ends before StageCreate.
	StageBuild
	// StageCreate makes the session exist, with the events built so far.
	StageCreate
	// StageDrop removes the session. Its events may go later, in the
	// background, but from this batch on nothing reads them.
	StageDrop
)

// Batch is one atomic write.
type Batch struct {
	Session string // "" when only Values are written
	Stage   Stage

	First  int64    // seq of Events[0]
	Events [][]byte // encoded events, numbered without a gap

	Header     []byte // nil: unchanged
	Summary    []byte // nil: unchanged; never nil beside events
	Pending    []byte // nil: unchanged
	Checkpoint []byte // nil: unchanged

	Values []Value
}

// Value is one keyed value; nil Data removes it.
type Value struct {
	Kind, Key string
	Data      []byte
}

// Record is what a backend knows of one session without reading its log.
type Record struct {
	ID         string
	Header     []byte // nil when it was unreadable; then Damage says so
	Summary    []byte
	Pending    []byte
	Checkpoint []byte // only from Load
	Events     int64  // how many events the log holds
	Damage     string // "" or what the backend found wrong when it was opened
}

// Fault is the first place where a log cannot be read. It is ErrDamaged.
type Fault struct {
	Session string
	Seq     int64 // the first event that is not readable; -1: the header
	Reason  string
}

func (f *Fault) Error() string {
	return fmt.Sprintf("session %s: damaged at seq %d: %s", f.Session, f.Seq, f.Reason)
}

// Is makes every fault answer to ErrDamaged.
func (f *Fault) Is(target error) bool { return target == ErrDamaged }

// Size estimates what the batch costs in a write.
func (b *Batch) Size() int {
	const perRecord = 64
	n := len(b.Header) + len(b.Summary) + len(b.Pending) + len(b.Checkpoint) + 4*perRecord
	for _, e := range b.Events {
		n += len(e) + perRecord
	}
	for _, v := range b.Values {
		n += len(v.Kind) + len(v.Key) + len(v.Data) + perRecord
	}
	return n
}
