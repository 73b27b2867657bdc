package logstore

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"log/slog"
	"os"

	"github.com/syndtr/goleveldb/leveldb"
	"github.com/syndtr/goleveldb/leveldb/opt"
)

// A backup is gzip of
//
//	backupMagic
//	for each record in key order: uvarint length, key, uvarint length, stored value
//	0, then the SHA-256 of everything before it
//
// The values keep their checksums and the tally is among them, so a backup
// proves by itself that it is whole.
const (
	backupMagic = "meanwhile backup 1\n"

	backupKeyMax   = 4 << 10
	backupValueMax = 16 << 20 // a change of session is smaller
	restoreBatch   = 1 << 20  // bytes of one write of a restore

	// restoreName is where a restore gathers the database until it is whole.
	restoreName = "store.restoring"
)

// Errors of backups.
var (
	ErrBadBackup = errors.New("this is no whole backup")
	ErrNotEmpty  = errors.New("there is a store already: restore into an empty directory")
)

// Backup writes everything the store holds, as it is at one instant between two
// groups. Writing goes on meanwhile. A store with unreadable places refuses:
// what they hold would be missing without a word.
func (s *Store) Backup(ctx context.Context, w io.Writer) error {
	snap, err := s.db.GetSnapshot()
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	defer snap.Release()
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	out := &recordWriter{w: bufio.NewWriterSize(z, 64<<10), sum: sha256.New()}
	out.write([]byte(backupMagic))
	it := snap.NewIterator(nil, &opt.ReadOptions{DontFillCache: true, Strict: opt.StrictReader})
	defer it.Release()
	for it.Next() && out.err == nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		out.field(it.Key())
		out.field(it.Value())
	}
	if err := it.Error(); err != nil {
		return fmt.Errorf("backup: the store has places that cannot be read; stop the host and let verify say what is missing: %w", err)
	}
	out.write([]byte{0})
	sum := out.sum.Sum(nil)
	out.write(sum)
	return errors.Join(out.err, out.w.Flush(), z.Close())
}

// recordWriter keeps the first error; what follows it is not written.
type recordWriter struct {
	w   *bufio.Writer
	sum hash.Hash
	err error
}

func (r *recordWriter) write(b []byte) {
	if r.err == nil {
		_, r.err = r.w.Write(b)
	}
	r.sum.Write(b)
}

func (r *recordWriter) field(b []byte) {
	r.write(binary.AppendUvarint(nil, uint64(len(b))))
	r.write(b)
}

// Restore makes a store under dir from a backup. It is there whole, verified and
// on disk, or not at all. dir must have no store yet.
func Restore(ctx context.Context, r io.Reader, dir string) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	lock, err := lockDir(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	p := opener{dir: dir, folder: restoreName, o: Options{Log: slog.New(slog.DiscardHandler)}}
	home := opener{dir: dir}.data()
	if files, err := os.ReadDir(home); err == nil && len(files) > 0 {
		return fmt.Errorf("%s: %w", home, ErrNotEmpty)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// What an interrupted restore left is worth nothing.
	if err := os.RemoveAll(p.data()); err != nil {
		return err
	}
	if err := os.Mkdir(p.data(), 0o700); err != nil {
		return err
	}
	if err := p.fill(ctx, r); err != nil {
		return errors.Join(err, os.RemoveAll(p.data()))
	}
	if err := remove(home); err != nil { // an empty folder
		return err
	}
	if err := os.Rename(p.data(), home); err != nil {
		return err
	}
	return syncDir(dir)
}

// fill reads a backup into a new database and verifies that.
func (p opener) fill(ctx context.Context, r io.Reader) (err error) {
	db, stor, err := p.openDB(opt.StrictAll)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close(), stor.Close()) }()
	var b leveldb.Batch
	size := 0
	err = readBackup(r, func(key, stored []byte) error {
		b.Put(key, stored)
		if size += len(key) + len(stored); size < restoreBatch {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := db.Write(&b, synced())
		b.Reset()
		size = 0
		return err
	})
	if err != nil {
		return err
	}
	if err := db.Write(&b, synced()); err != nil {
		return err
	}
	if err := checkFormat(db, true); err != nil {
		return err
	}
	report := &Report{}
	if err := report.verify(db); err != nil {
		return err
	}
	if !report.Intact() {
		return fmt.Errorf("%w: %s", ErrBadBackup, report.Missing())
	}
	return nil
}

// readBackup calls fn with each record, whose bytes are fn's for the call only.
// Nothing counts before it returned nil.
func readBackup(r io.Reader, fn func(key, stored []byte) error) error {
	bad := func(why string, err error) error {
		if err == nil || errors.Is(err, io.EOF) {
			return fmt.Errorf("%w: %s", ErrBadBackup, why)
		}
		return fmt.Errorf("%w: %s: %w", ErrBadBackup, why, err)
	}
	z, err := gzip.NewReader(r)
	if err != nil {
		return bad("it does not begin as one", err)
	}
	in := &recordReader{r: bufio.NewReaderSize(z, 64<<10), sum: sha256.New()}
	magic := make([]byte, len(backupMagic))
	if err := in.full(magic); err != nil || string(magic) != backupMagic {
		return bad("it does not begin as one", err)
	}
	var last []byte
	for {
		key, err := in.field(backupKeyMax)
		if err != nil {
			return bad("it ends in the middle", err)
		}
		if len(key) == 0 {
			break
		}
		if bytes.Compare(key, last) <= 0 {
			return bad("its records are out of order", nil)
		}
		last = key
		stored, err := in.field(backupValueMax)
		if err != nil {
			return bad("it ends in the middle", err)
		}
		if err := fn(key, stored); err != nil {
			return err
		}
	}
	want, got := in.sum.Sum(nil), make([]byte, sha256.Size)
	if _, err := io.ReadFull(in.r, got); err != nil || !bytes.Equal(got, want) {
		return bad("its checksum does not match", err)
	}
	if _, err := in.r.ReadByte(); !errors.Is(err, io.EOF) {
		return bad("something follows its end", err)
	}
	return nil
}

type recordReader struct {
	r   *bufio.Reader
	sum hash.Hash
}

// ReadByte is for ReadUvarint.
func (r *recordReader) ReadByte() (byte, error) {
	b, err := r.r.ReadByte()
	if err == nil {
		r.sum.Write([]byte{b})
	}
	return b, err
}

func (r *recordReader) full(b []byte) error {
	_, err := io.ReadFull(r.r, b)
	r.sum.Write(b)
	return err
}

func (r *recordReader) field(most uint64) ([]byte, error) {
	n, err := binary.ReadUvarint(r)
	if err != nil {
		return nil, err
	}
	if n > most {
		return nil, fmt.Errorf("a field has %d bytes, more than %d", n, most)
	}
	b := make([]byte, n)
	return b, r.full(b)
}
