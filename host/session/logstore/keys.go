package logstore

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
)

// Every key of the database is made here, and nowhere else.
//
//	'f'                          format version, 1 byte
//	't'                          tally: sessions, events (two uvarints)
//	'h' id                       header
//	's' id                       event count (uvarint), then the summary
//	'p' id                       what is pending, for the list
//	'c' id                       checkpoint
//	'e' len(id) id seq           one event; len one byte, seq big endian
//	'd' id                       doomed: being built or removed, see Stage
//	'x' id                       damage found by a lenient open, text
//	'v' len(kind) kind key       keyed value
//
// Every value but the format version is sealed: four bytes of CRC-32C over key
// and payload, then the payload. The key is in the sum so that a record read
// under the wrong key does not pass.
const (
	formatVersion = 1

	kindFormat     = 'f'
	kindTally      = 't'
	kindHeader     = 'h'
	kindSummary    = 's'
	kindPending    = 'p'
	kindCheckpoint = 'c'
	kindEvent      = 'e'
	kindDoomed     = 'd'
	kindDamage     = 'x'
	kindValue      = 'v'
)

// maxID bounds ids and kinds: their length is one byte of a key.
const maxID = 255

var (
	errSeal    = errors.New("checksum does not match")
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

func idKey(kind byte, id string) []byte {
	return append([]byte{kind}, id...)
}

func eventPrefix(id string) []byte {
	k := make([]byte, 0, 2+len(id)+8)
	k = append(k, kindEvent, byte(len(id)))
	return append(k, id...)
}

func eventKey(id string, seq int64) []byte {
	return binary.BigEndian.AppendUint64(eventPrefix(id), uint64(seq))
}

// eventRange spans the events of id from seq on.
func eventRange(id string, seq int64) (start, limit []byte) {
	return eventKey(id, seq), append(eventKey(id, math.MaxInt64), 0)
}

// eventOf splits an event key; ok is false for any other key.
func eventOf(key []byte) (id string, seq int64, ok bool) {
	if len(key) < 10 || key[0] != kindEvent || len(key) != 10+int(key[1]) {
		return "", 0, false
	}
	n := 2 + int(key[1])
	return string(key[2:n]), int64(binary.BigEndian.Uint64(key[n:])), true
}

func valuePrefix(kind string) []byte {
	return append([]byte{kindValue, byte(len(kind))}, kind...)
}

func valueKey(kind, key string) []byte {
	return append(valuePrefix(kind), key...)
}

// after is the first key past every key with this prefix. No prefix here ends
// in 0xff, since ids and kinds are text.
func after(prefix []byte) []byte {
	limit := append([]byte(nil), prefix...)
	limit[len(limit)-1]++
	return limit
}

func seal(key []byte, payload ...[]byte) []byte {
	sum := crc32.Update(0, castagnoli, key)
	size := 4
	for _, p := range payload {
		sum = crc32.Update(sum, castagnoli, p)
		size += len(p)
	}
	out := binary.LittleEndian.AppendUint32(make([]byte, 0, size), sum)
	for _, p := range payload {
		out = append(out, p...)
	}
	return out
}

// unseal returns a copy of the payload: the iterator's buffers do not live on.
func unseal(key, stored []byte) ([]byte, error) {
	if len(stored) < 4 {
		return nil, errSeal
	}
	sum := crc32.Update(crc32.Update(0, castagnoli, key), castagnoli, stored[4:])
	if sum != binary.LittleEndian.Uint32(stored) {
		return nil, errSeal
	}
	return append([]byte{}, stored[4:]...), nil
}

type tally struct{ sessions, events int64 }

func (t tally) append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(t.sessions))
	return binary.AppendUvarint(b, uint64(t.events))
}

func parseTally(b []byte) (tally, error) {
	sessions, n := binary.Uvarint(b)
	if n <= 0 {
		return tally{}, errSeal
	}
	events, m := binary.Uvarint(b[n:])
	if m <= 0 || n+m != len(b) {
		return tally{}, errSeal
	}
	return tally{int64(sessions), int64(events)}, nil
}

// splitSummary undoes the count that stands before a summary.
func splitSummary(b []byte) (count int64, summary []byte, err error) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > math.MaxInt64 {
		return 0, nil, errSeal
	}
	return int64(n), b[size:], nil
}
