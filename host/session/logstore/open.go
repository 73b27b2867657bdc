package logstore

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/syndtr/goleveldb/leveldb"
	ldberrors "github.com/syndtr/goleveldb/leveldb/errors"
	"github.com/syndtr/goleveldb/leveldb/filter"
	"github.com/syndtr/goleveldb/leveldb/opt"
	"github.com/syndtr/goleveldb/leveldb/storage"
)

// asideMax is how many copies of damaged databases may lie beside the live one.
const asideMax = 8

// ErrReadOnly refuses writes to a store that was opened to be read.
var ErrReadOnly = errors.New("session store is open for reading only")

// lenient leaves out the checks that refuse a whole database for one bad place
// in it. What they would have refused is found again by verify.
const lenient = opt.StrictJournalChecksum | opt.StrictBlockChecksum

// synced is the one way in which anything that matters is written.
func synced() *opt.WriteOptions { return &opt.WriteOptions{Sync: true} }

// Options; the zero value opens for reading and writing.
type Options struct {
	// ReadOnly changes nothing on disk and refuses writes. The directory is
	// locked all the same: goleveldb cannot read a database in use.
	ReadOnly bool
	// Log gets what an open found; nil: slog.Default.
	Log *slog.Logger
	// Synced is told of every group that reached the disk, on the writer's
	// goroutine; nil: nobody is.
	Synced func(Sync)

	wrap func(storage.Storage) storage.Storage // tests put faults here
}

// Open opens the database under dir, creating both with access for this user
// only. *LockedError when another process has it.
func Open(dir string, o Options) (*Store, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if err := privateDir(dir, o.ReadOnly); err != nil {
		return nil, err
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	s, err := opener{dir: dir, o: o}.open()
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	s.lock = lock
	return s, nil
}

func privateDir(dir string, readOnly bool) error {
	if readOnly {
		_, err := os.Stat(dir)
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return err
	}
	return os.MkdirAll(filepath.Join(dir, folderName), 0o700)
}

type opener struct {
	dir    string
	o      Options
	folder string // of the database, below dir; "" = folderName
}

// folderName is where the database lies in a data directory.
const folderName = "store"

func (p opener) data() string { return filepath.Join(p.dir, cmp.Or(p.folder, folderName)) }

// suspect is a file that a process leaves when it stops over corruption that an
// open does not meet, in the middle of a table for instance. The next open
// then starts with the lenient way.
func (p opener) suspect() string { return filepath.Join(p.dir, "suspect") }

func (p opener) open() (*Store, error) {
	var cause error
	if text, err := os.ReadFile(p.suspect()); err == nil {
		cause = fmt.Errorf("the last process stopped over damaged storage: %s", strings.TrimSpace(string(text)))
	} else {
		s, err := p.strict()
		if err == nil {
			return s, nil
		}
		if !corrupted(err) {
			return nil, fmt.Errorf("open %s: %w", p.data(), err)
		}
		cause = err
	}
	p.o.Log.Warn("session store did not open with full checks, opening leniently", "dir", p.data(), "cause", cause)
	return p.lenient(cause)
}

// strict opens with every check and reads what listing will read, so that a
// bad block in there is found now.
func (p opener) strict() (*Store, error) {
	db, stor, err := p.openDB(opt.StrictAll)
	if err != nil {
		return nil, err
	}
	s, err := p.finish(db, stor, true)
	if err != nil {
		return nil, errors.Join(err, db.Close(), stor.Close())
	}
	return s, nil
}

func (p opener) lenient(cause error) (*Store, error) {
	report := &Report{Cause: cause.Error()}
	var err error
	if report.Journal, err = p.rot(); err != nil {
		return nil, fmt.Errorf("open %s: damaged (%w): %w", p.data(), cause, err)
	}
	if !p.o.ReadOnly {
		aside, err := p.copyAside()
		if err != nil {
			return nil, fmt.Errorf("open %s: damaged (%w), and it could not be copied aside: %w", p.data(), cause, err)
		}
		report.Aside = aside
	}
	fail := func(err error) error {
		rest := fmt.Sprintf("a copy is in %q", report.Aside)
		switch {
		case !p.dropCopy(report.Aside):
		case corrupted(err):
			rest = "nothing in it was changed: put a backup in its place, or move it away to begin anew"
		default:
			rest = "nothing in it was changed"
		}
		return fmt.Errorf("open %s: damaged (%w), also for a lenient open: %w; %s", p.data(), cause, err, rest)
	}
	db, stor, err := p.openDB(lenient)
	if err != nil {
		return nil, fail(err)
	}
	giveUp := func(err error) (*Store, error) {
		closed := errors.Join(db.Close(), stor.Close())
		return nil, errors.Join(fail(err), closed)
	}
	if err := report.verify(db); err != nil {
		return giveUp(err)
	}
	if !p.o.ReadOnly {
		if err := p.record(db, report); err != nil {
			return giveUp(err)
		}
	}
	s, err := p.finish(db, stor, false)
	if err != nil {
		return giveUp(err)
	}
	s.report = report
	p.o.Log.Warn("session store was damaged", "missing", !report.Intact(), "report", report.String())
	return s, nil
}

// record makes the report last: marks on the damaged sessions, the counts as
// they are now, a text beside the copy. An intact store needs none of it.
func (p opener) record(db *leveldb.DB, report *Report) error {
	if report.Intact() {
		return errors.Join(os.RemoveAll(report.Aside), remove(p.suspect()))
	}
	if err := os.WriteFile(filepath.Join(report.Aside, "REPORT.txt"), []byte(report.String()+"\n"), 0o600); err != nil {
		return err
	}
	var b leveldb.Batch
	for _, f := range report.Faults {
		key := idKey(kindDamage, f.Session)
		b.Put(key, seal(key, []byte(fmt.Sprintf("seq %d: %s", f.Seq, f.Reason))))
	}
	key := []byte{kindTally}
	b.Put(key, seal(key, report.found.append(nil)))
	key = []byte{kindFormat}
	b.Put(key, []byte{formatVersion})
	if err := db.Write(&b, synced()); err != nil {
		return err
	}
	return remove(p.suspect())
}

func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func (p opener) openDB(strict opt.Strict) (*leveldb.DB, storage.Storage, error) {
	files, err := storage.OpenFile(p.data(), p.o.ReadOnly)
	if err != nil {
		return nil, nil, err
	}
	dir := p.data()
	var stor storage.Storage = &syncedStorage{Storage: files, sync: func() error { return syncDir(dir) }}
	if p.o.wrap != nil {
		stor = p.o.wrap(stor)
	}
	db, err := openStorage(stor, strict, p.o.ReadOnly)
	if err != nil {
		return nil, nil, errors.Join(err, stor.Close())
	}
	return db, stor, nil
}

func openStorage(stor storage.Storage, strict opt.Strict, readOnly bool) (*leveldb.DB, error) {
	o := &opt.Options{
		Strict:                        strict,
		WriteBuffer:                   writeBuffer,
		BlockCacheCapacity:            8 << 20,
		OpenFilesCacheCapacity:        128,
		Filter:                        filter.NewBloomFilter(10),
		DisableLargeBatchTransaction:  true, // group bounds a batch; nothing goes past the journal
		DisableSeeksCompaction:        true,
		CompactionTableSizeMultiplier: 2,
	}
	if readOnly {
		stor = newOverlay(stor)
		// No table is rewritten: it would be in memory.
		o.CompactionL0Trigger, o.WriteL0SlowdownTrigger, o.WriteL0PauseTrigger = 1<<30, 1<<30, 1<<30
		o.CompactionTotalSize = 1 << 50
	}
	return leveldb.Open(stor, o)
}

// finish reads the counts and starts the writer. With scan it also reads what a
// listing will read; a lenient open has verified that already.
func (p opener) finish(db *leveldb.DB, stor storage.Storage, scan bool) (*Store, error) {
	if err := checkFormat(db, p.o.ReadOnly); err != nil {
		return nil, err
	}
	s := &Store{db: db, files: stor}
	held, doomed, err := counts(db)
	if err != nil {
		return nil, err
	}
	var t tally
	b, err := get(db, []byte{kindTally})
	if err == nil && b != nil {
		t, err = parseTally(b)
	}
	if err != nil {
		return nil, asCorrupted(err)
	}
	if scan {
		if err := s.scan(); err != nil {
			return nil, err
		}
	}
	s.groups = newGroup(db, held, doomed, t)
	s.groups.onFail, s.groups.onSync = p.markSuspect, p.o.Synced
	if p.o.ReadOnly {
		s.groups.fail(ErrReadOnly)
	}
	return s, nil
}

// markSuspect leaves word for the next open. Only corruption is worth it: a
// full disk is no reason to distrust what is there.
func (p opener) markSuspect(err error) {
	if corrupted(err) {
		if werr := os.WriteFile(p.suspect(), []byte(err.Error()+"\n"), 0o600); werr != nil {
			p.o.Log.Error("could not mark the store as suspect", "err", werr)
		}
	}
}

func checkFormat(db *leveldb.DB, readOnly bool) error {
	v, err := db.Get([]byte{kindFormat}, nil)
	switch {
	case err == nil && len(v) == 1 && v[0] == formatVersion:
		return nil
	case err == nil:
		return fmt.Errorf("format %v is not %d: this store was written by another program version", v, formatVersion)
	case !errors.Is(err, leveldb.ErrNotFound):
		return err
	}
	it := db.NewIterator(nil, nil)
	defer it.Release()
	if it.Next() {
		return asCorrupted(errors.New("no format version in a store that is not empty"))
	}
	if err := it.Error(); err != nil || readOnly {
		return err
	}
	return db.Put([]byte{kindFormat}, []byte{formatVersion}, synced())
}

func asCorrupted(err error) error {
	if errors.Is(err, errSeal) || !corrupted(err) {
		return &ldberrors.ErrCorrupted{Err: err}
	}
	return err
}

func corrupted(err error) bool {
	var a *ldberrors.ErrCorrupted
	var b *storage.ErrCorrupted
	return errors.As(err, &a) || errors.As(err, &b)
}

// copyAside copies the database next to itself before anything touches it.
// Tables never change once written, so links do for them.
func (p opener) copyAside() (to string, err error) {
	old, err := filepath.Glob(filepath.Join(p.dir, "aside-*"))
	if err != nil {
		return "", err
	}
	if len(old) >= asideMax {
		return "", fmt.Errorf("%d copies of damaged stores lie in %s: look at their REPORT.txt and move them away", len(old), p.dir)
	}
	to, err = os.MkdirTemp(p.dir, "aside-"+time.Now().UTC().Format("20060102T150405")+"-")
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil { // half a copy is of no use
			err = errors.Join(err, os.RemoveAll(to))
		}
	}()
	files, err := os.ReadDir(p.data())
	if err != nil {
		return to, err
	}
	for _, f := range files {
		if f.Name() == "LOCK" || !f.Type().IsRegular() {
			continue
		}
		if err := copyFile(filepath.Join(p.data(), f.Name()), filepath.Join(to, f.Name())); err != nil {
			return to, err
		}
	}
	return to, errors.Join(syncDir(to), syncDir(p.dir))
}

func copyFile(from, to string) error {
	if filepath.Ext(from) == ".ldb" && os.Link(from, to) == nil {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}
