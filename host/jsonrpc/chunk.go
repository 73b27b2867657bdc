package jsonrpc

import (
	"encoding/json"
	"unicode/utf8"
)

// ChunkText is how many bytes of an item one chunk carries. Compact JSON at
// most doubles as a string, so a chunk always fits a frame.
const ChunkText = 256 << 10

// chunks returns an item as the values that carry it: itself, or {chunk, more}
// values when it is long or looks like one of those.
func chunks(item json.RawMessage) []json.RawMessage {
	if len(item) <= ChunkText {
		if _, _, looks := asChunk(item); !looks {
			return []json.RawMessage{item}
		}
	}
	parts := make([]json.RawMessage, 0, len(item)/ChunkText+1)
	for {
		n := min(ChunkText, len(item))
		for n < len(item) && !utf8.RuneStart(item[n]) {
			n--
		}
		more := n < len(item)
		p := make([]byte, 0, n+n/4+32)
		p = appendText(append(p, `{"chunk":`...), string(item[:n]))
		if item = item[n:]; more {
			p = append(p, `,"more":true}`...)
		} else {
			p = append(p, `,"more":false}`...)
		}
		if parts = append(parts, p); !more {
			return parts
		}
	}
}

// asChunk reads a value as a chunk: an object of exactly a text chunk and a
// bool more.
func asChunk(value json.RawMessage) (text string, more, ok bool) {
	fields := 0
	isObject, err := eachMember(value, func(name string, v json.RawMessage) error {
		switch {
		case name == "chunk" && v[0] == '"':
			_ = json.Unmarshal(v, &text)
		case name == "more" && (v[0] == 't' || v[0] == 'f'):
			more = v[0] == 't'
		default:
			return ErrTooBig // not a chunk; which error is of no matter
		}
		fields++
		return nil
	})
	return text, more, isObject && err == nil && fields == 2
}

// EncodeNotices returns the frames of a notification: one, or several whose
// params are chunks. They must be written together.
func EncodeNotices(method string, params json.RawMessage) [][]byte {
	if params == nil {
		return [][]byte{EncodeNotice(method, nil)}
	}
	parts := chunks(params)
	frames := make([][]byte, len(parts))
	for i, p := range parts {
		frames[i] = EncodeNotice(method, p)
	}
	return frames
}
