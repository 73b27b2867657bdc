package jsonrpc

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// MaxDepth is how deep arrays and objects may nest in a frame.
const MaxDepth = 64

// nameScan is how many member names of one object are compared one by one
// before a set takes over.
const nameScan = 16

// check reports whether data is one strict JSON text: valid UTF-8 after
// unescaping too, no member twice, no deeper than MaxDepth, nothing after it.
func check(data []byte) *FrameError {
	if !utf8.Valid(data) {
		return badFrame("text is not valid UTF-8")
	}
	// The walk below trusts the grammar, so the grammar comes first.
	if !json.Valid(data) {
		return badFrame("not one JSON text")
	}
	w := walker{data: data}
	return w.value(0)
}

// walker steps through a JSON text that is known to be grammatical.
type walker struct {
	data  []byte
	pos   int
	names [][]byte // names of the objects that are open, innermost last
}

func (w *walker) space() {
	for w.pos < len(w.data) {
		switch w.data[w.pos] {
		case ' ', '\t', '\n', '\r':
			w.pos++
		default:
			return
		}
	}
}

func (w *walker) value(depth int) *FrameError {
	w.space()
	switch w.data[w.pos] {
	case '{':
		if depth == MaxDepth {
			return badFrame("nested deeper than %d", MaxDepth)
		}
		return w.object(depth + 1)
	case '[':
		if depth == MaxDepth {
			return badFrame("nested deeper than %d", MaxDepth)
		}
		return w.array(depth + 1)
	case '"':
		_, err := w.text()
		return err
	}
	w.scalar()
	return nil
}

func (w *walker) scalar() {
	for w.pos < len(w.data) {
		switch w.data[w.pos] {
		case ',', ':', ']', '}', ' ', '\t', '\n', '\r':
			return
		}
		w.pos++
	}
}

func (w *walker) array(depth int) *FrameError {
	w.pos++
	for {
		w.space()
		switch w.data[w.pos] {
		case ']':
			w.pos++
			return nil
		case ',':
			w.pos++
		}
		if err := w.value(depth); err != nil {
			return err
		}
	}
}

func (w *walker) object(depth int) *FrameError {
	base := len(w.names)
	defer func() { w.names = w.names[:base] }()
	var seen map[string]struct{}
	w.pos++
	for {
		w.space()
		switch w.data[w.pos] {
		case '}':
			w.pos++
			return nil
		case ',':
			w.pos++
			w.space()
		}
		raw, err := w.text()
		if err != nil {
			return err
		}
		name := unquote(raw)
		if seen == nil {
			for _, n := range w.names[base:] {
				if bytes.Equal(n, name) {
					return badFrame("member %q twice", clip(name))
				}
			}
			if w.names = append(w.names, name); len(w.names)-base > nameScan {
				seen = make(map[string]struct{}, 2*nameScan)
				for _, n := range w.names[base:] {
					seen[string(n)] = struct{}{}
				}
			}
		} else {
			if _, twice := seen[string(name)]; twice {
				return badFrame("member %q twice", clip(name))
			}
			seen[string(name)] = struct{}{}
		}
		w.space()
		w.pos++ // the colon
		if err := w.value(depth); err != nil {
			return err
		}
	}
}

// text steps over a string and returns it with its quotes. It refuses escapes
// that name half a surrogate pair: they have no UTF-8.
func (w *walker) text() ([]byte, *FrameError) {
	start := w.pos
	w.pos++
	for {
		switch w.data[w.pos] {
		case '"':
			w.pos++
			return w.data[start:w.pos], nil
		case '\\':
			if w.data[w.pos+1] != 'u' {
				w.pos += 2
				continue
			}
			r := hex4(w.data[w.pos+2:])
			w.pos += 6
			if r < 0xD800 || r > 0xDFFF {
				continue
			}
			rest := w.data[w.pos:]
			if r >= 0xDC00 || len(rest) < 6 || rest[0] != '\\' || rest[1] != 'u' {
				return nil, badFrame("escape \\u%04x is half a pair", r)
			}
			if low := hex4(rest[2:]); low < 0xDC00 || low > 0xDFFF {
				return nil, badFrame("escape \\u%04x is half a pair", r)
			}
			w.pos += 6
		default:
			w.pos++
		}
	}
}

// eachMember calls f for the members of the object data, which must have
// passed check. It reports false when data is not an object, and stops with
// f's error.
func eachMember(data []byte, f func(name string, value json.RawMessage) error) (bool, error) {
	w := walker{data: data}
	w.space()
	if w.pos >= len(data) || data[w.pos] != '{' {
		return false, nil
	}
	w.pos++
	for {
		w.space()
		switch data[w.pos] {
		case '}':
			return true, nil
		case ',':
			w.pos++
			w.space()
		}
		raw, _ := w.text()
		w.space()
		w.pos++
		w.space()
		start := w.pos
		w.skip()
		if err := f(string(unquote(raw)), json.RawMessage(data[start:w.pos:w.pos])); err != nil {
			return true, err
		}
	}
}

// eachItem is eachMember for arrays.
func eachItem(data []byte, f func(value json.RawMessage) error) (bool, error) {
	w := walker{data: data}
	w.space()
	if w.pos >= len(data) || data[w.pos] != '[' {
		return false, nil
	}
	w.pos++
	for {
		w.space()
		switch data[w.pos] {
		case ']':
			return true, nil
		case ',':
			w.pos++
			w.space()
		}
		start := w.pos
		w.skip()
		if err := f(json.RawMessage(data[start:w.pos:w.pos])); err != nil {
			return true, err
		}
	}
}

// skip steps over one checked value without looking into it.
func (w *walker) skip() {
	depth := 0
	for {
		switch w.data[w.pos] {
		case '"':
			_, _ = w.text() // checked before
		case '{', '[':
			depth++
			w.pos++
		case '}', ']':
			depth--
			w.pos++
		case ',', ':', ' ', '\t', '\n', '\r':
			w.pos++
			continue
		default:
			w.scalar()
		}
		if depth == 0 {
			return
		}
	}
}

func unquote(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	var s string
	_ = json.Unmarshal(raw, &s) // grammatical, so it cannot fail
	return []byte(s)
}

func hex4(b []byte) rune {
	var r rune
	for _, c := range b[:4] {
		r <<= 4
		switch {
		case c <= '9':
			r |= rune(c - '0')
		case c >= 'a':
			r |= rune(c-'a') + 10
		default:
			r |= rune(c-'A') + 10
		}
	}
	return r
}

// clip keeps a peer's words short where they are repeated in an error.
func clip(b []byte) string {
	const most = 64
	if len(b) <= most {
		return string(b)
	}
	return string(bytes.ToValidUTF8(b[:most], nil)) + "…"
}
