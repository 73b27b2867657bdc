package logstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/syndtr/goleveldb/leveldb"
	"github.com/syndtr/goleveldb/leveldb/iterator"
	"github.com/syndtr/goleveldb/leveldb/storage"
	"github.com/syndtr/goleveldb/leveldb/util"

	"meanwhile/host/session"
)

// readMax bounds the bytes of one Events call.
const readMax = 1 << 20

// Store is an open database.
type Store struct {
	db     *leveldb.DB
	files  storage.Storage
	lock   *os.File
	report *Report
	groups *group

	closeOnce sync.Once
	closeErr  error
}

var _ session.Backend = (*Store)(nil)

// Report says what a lenient open found, nil after an ordinary open.
func (s *Store) Report() *Report { return s.report }

// Write queues b.
func (s *Store) Write(b session.Batch, done func(error)) { s.groups.put(b, done) }

// Sessions lists every session's records.
func (s *Store) Sessions(fn func(session.Record) error) error {
	snap, err := s.db.GetSnapshot()
	if err != nil {
		return fmt.Errorf("list sessions: %w", err)
	}
	defer snap.Release()
	it := snap.NewIterator(util.BytesPrefix([]byte{kindHeader}), nil)
	defer it.Release()
	for it.Next() {
		rec, err := readRecord(snap, string(it.Key()[1:]))
		if err != nil {
			return err
		}
		if err := fn(rec); err != nil {
			return err
		}
	}
	if err := it.Error(); err != nil {
		return fmt.Errorf("list sessions: %w", err)
	}
	// A session whose header is gone is listed by what is left of it.
	return s.headless(snap, fn)
}

func (s *Store) headless(r leveldb.Reader, fn func(session.Record) error) error {
	it := r.NewIterator(util.BytesPrefix([]byte{kindDamage}), nil)
	defer it.Release()
	for it.Next() {
		id := string(it.Key()[1:])
		rec, err := readRecord(r, id)
		if err != nil {
			return err
		}
		if rec.Header != nil {
			continue
		}
		if err := fn(rec); err != nil {
			return err
		}
	}
	return it.Error()
}

// Load reads one session's records.
func (s *Store) Load(id string) (session.Record, error) {
	snap, err := s.db.GetSnapshot()
	if err != nil {
		return session.Record{}, fmt.Errorf("load session %s: %w", id, err)
	}
	defer snap.Release()
	rec, err := readRecord(snap, id)
	if err != nil {
		return session.Record{}, err
	}
	if rec.Header == nil && rec.Damage == "" {
		return session.Record{}, fmt.Errorf("load session %s: %w", id, session.ErrNoSession)
	}
	// A checkpoint is a cache: an unreadable one is as good as none.
	if b, err := get(snap, idKey(kindCheckpoint, id)); err == nil {
		rec.Checkpoint = b
	}
	return rec, nil
}

func readRecord(r leveldb.Reader, id string) (session.Record, error) {
	rec := session.Record{ID: id}
	damage := func(what string, err error) error {
		if !errors.Is(err, errSeal) && !corrupted(err) {
			return fmt.Errorf("session %s: read %s: %w", id, what, err)
		}
		if rec.Damage == "" {
			rec.Damage = what + ": " + err.Error()
		}
		return nil
	}
	if b, err := get(r, idKey(kindDamage, id)); err == nil {
		rec.Damage = string(b)
	}
	var err error
	if rec.Header, err = get(r, idKey(kindHeader, id)); err != nil {
		if err := damage("header", err); err != nil {
			return rec, err
		}
	}
	if rec.Pending, err = get(r, idKey(kindPending, id)); err != nil {
		if err := damage("pending", err); err != nil {
			return rec, err
		}
	}
	b, err := get(r, idKey(kindSummary, id))
	if err == nil && b != nil {
		rec.Events, rec.Summary, err = splitSummary(b)
	}
	if err != nil {
		if err := damage("summary", err); err != nil {
			return rec, err
		}
	}
	return rec, nil
}

// get reads one sealed record, nil when there is none.
func get(r leveldb.Reader, key []byte) ([]byte, error) {
	b, err := r.Get(key, nil)
	if errors.Is(err, leveldb.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return unseal(key, b)
}

// Events reads a run of events.
func (s *Store) Events(id string, from int64, max int) ([][]byte, error) {
	start, limit := eventRange(id, from)
	it := s.db.NewIterator(&util.Range{Start: start, Limit: limit}, nil)
	defer it.Release()
	var events [][]byte
	size := 0
	for want := from; len(events) < max && size < readMax && it.Next(); want++ {
		data, err := eventAt(it, id, want)
		if err != nil {
			return events, err
		}
		events = append(events, data)
		size += len(data)
	}
	if err := it.Error(); err != nil {
		return events, &session.Fault{Session: id, Seq: from + int64(len(events)), Reason: err.Error()}
	}
	return events, nil
}

func eventAt(it iterator.Iterator, id string, want int64) ([]byte, error) {
	_, seq, ok := eventOf(it.Key())
	if !ok || seq != want {
		return nil, &session.Fault{Session: id, Seq: want, Reason: fmt.Sprintf("missing, next is seq %d", seq)}
	}
	data, err := unseal(it.Key(), it.Value())
	if err != nil {
		return nil, &session.Fault{Session: id, Seq: want, Reason: err.Error()}
	}
	return data, nil
}

// Get reads one keyed value.
func (s *Store) Get(kind, key string) ([]byte, error) {
	b, err := get(s.db, valueKey(kind, key))
	if err != nil {
		return nil, fmt.Errorf("read %s value: %w", kind, err)
	}
	return b, nil
}

// Each lists the values of one kind.
func (s *Store) Each(kind string, fn func(key string, value []byte) error) error {
	prefix := valuePrefix(kind)
	it := s.db.NewIterator(&util.Range{Start: prefix, Limit: after(prefix)}, nil)
	defer it.Release()
	for it.Next() {
		value, err := unseal(it.Key(), it.Value())
		if err != nil {
			return fmt.Errorf("read %s values: %w", kind, err)
		}
		if err := fn(string(it.Key()[len(prefix):]), value); err != nil {
			return err
		}
	}
	return it.Error()
}

// Close writes what is queued and releases the directory.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		s.groups.close()
		s.closeErr = errors.Join(s.db.Close(), s.files.Close())
		if s.lock != nil {
			s.closeErr = errors.Join(s.closeErr, s.lock.Close())
		}
	})
	return s.closeErr
}

// counts reads how many events each session holds, and which ids are doomed.
func counts(r leveldb.Reader) (map[string]int64, []string, error) {
	held := make(map[string]int64)
	it := r.NewIterator(util.BytesPrefix([]byte{kindSummary}), nil)
	defer it.Release()
	for it.Next() {
		// An unreadable count is reported with its session, not here.
		if b, err := unseal(it.Key(), it.Value()); err == nil {
			if n, _, err := splitSummary(b); err == nil {
				held[string(it.Key()[1:])] = n
			}
		}
	}
	if err := it.Error(); err != nil {
		return nil, nil, fmt.Errorf("count events: %w", err)
	}
	var doomed []string
	dt := r.NewIterator(util.BytesPrefix([]byte{kindDoomed}), nil)
	defer dt.Release()
	for dt.Next() {
		doomed = append(doomed, string(dt.Key()[1:]))
	}
	return held, doomed, dt.Error()
}

func countedSummary(n int64, summary []byte) [][]byte {
	return [][]byte{binary.AppendUvarint(nil, uint64(n)), summary}
}
