package logstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
)

// The journal's format, as goleveldb writes it: blocks of chunks, each with a
// header of masked CRC-32C, length and type.
const (
	journalBlock  = 32 << 10
	journalHeader = 7
	chunkFull     = 1
	chunkFirst    = 2
	chunkLast     = 4
)

// chunkAt is the type and the whole length of the chunk that b starts with; 0, 0
// for none.
func chunkAt(b []byte) (kind byte, n int) {
	if len(b) < journalHeader {
		return 0, 0
	}
	kind, n = b[6], journalHeader+int(binary.LittleEndian.Uint16(b[4:]))
	if kind < chunkFull || kind > chunkLast || n > len(b) {
		return 0, 0
	}
	sum := crc32.Checksum(b[6:n], castagnoli)
	if binary.LittleEndian.Uint32(b) != (sum>>15|sum<<17)+0xa282ead8 {
		return 0, 0
	}
	return kind, n
}

// rotten reports whether a record begins behind a damaged place. A record is
// synced before the next one is written, so there is none behind a torn write:
// what was damaged, and what goleveldb drops behind it, was on disk.
func rotten(journal []byte) bool {
	damaged := false
	for block := range slices.Chunk(journal, journalBlock) {
		for i := 0; i+journalHeader <= len(block); {
			kind, n := chunkAt(block[i:])
			switch {
			case n == 0:
				damaged = true
				i++ // its length is not to be trusted: look everywhere
			case damaged && (kind == chunkFull || kind == chunkFirst):
				return true
			default:
				i += n
			}
		}
	}
	return false
}

// rot describes the first rotten journal; "" for none.
func (p opener) rot() (string, error) {
	names, err := filepath.Glob(filepath.Join(p.data(), "*.log"))
	if err != nil {
		return "", err
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		if rotten(b) {
			return fmt.Sprintf("%s is damaged in its middle", filepath.Base(name)), nil
		}
	}
	return "", nil
}

// dropCopy removes a copy of a store that is still as it was, and reports
// whether it did. Starts that fail again and again do not pile up copies.
func (p opener) dropCopy(aside string) bool {
	if aside == "" {
		return false
	}
	copied, err := os.ReadDir(aside)
	if err != nil {
		return false
	}
	for _, f := range copied {
		if f.Name() == "LOG" || f.Name() == "LOG.old" {
			continue // goleveldb's own diary
		}
		was, err := f.Info()
		is, serr := os.Stat(filepath.Join(p.data(), f.Name()))
		if errors.Join(err, serr) != nil || is.Size() != was.Size() {
			return false
		}
	}
	return os.RemoveAll(aside) == nil
}
