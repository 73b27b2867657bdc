package value

import (
	"strconv"
	"unicode/utf8"
)

// AppendString writes s as a JSON string. Invalid UTF-8 becomes U+FFFD: it can
// only come from our own bug, and a document must stay readable.
func AppendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				b = append(append(b, s[start:i]...), "\uFFFD"...)
				start = i + 1
			}
			i += n
			continue
		}
		if c < ' ' || c == '"' || c == '\\' {
			b = appendEscape(append(b, s[start:i]...), c)
			start = i + 1
		}
		i++
	}
	return append(append(b, s[start:]...), '"')
}

func appendEscape(b []byte, c byte) []byte {
	for i := 0; i < len(plainEscapes); i += 2 {
		if plainEscapes[i+1] == c && c != '/' {
			return append(b, '\\', plainEscapes[i])
		}
	}
	const hex = "0123456789abcdef"
	return append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

// Writer builds one document front to back; commas are its business. The
// caller answers for balance and for distinct names.
type Writer struct {
	b    []byte
	more bool // a value stands before: the next one needs a comma
}

// Bytes returns the document so far; the Writer is not to be used after.
func (w *Writer) Bytes() []byte { return w.b }

// Len is the number of bytes written so far.
func (w *Writer) Len() int { return len(w.b) }

func (w *Writer) lead() {
	if w.more {
		w.b = append(w.b, ',')
	}
	w.more = true
}

func (w *Writer) open(c byte) { w.lead(); w.b = append(w.b, c); w.more = false }

func (w *Writer) close(c byte) { w.b = append(w.b, c); w.more = true }

// Begin opens an object.
func (w *Writer) Begin() { w.open('{') }

// End closes an object.
func (w *Writer) End() { w.close('}') }

// BeginArray opens an array.
func (w *Writer) BeginArray() { w.open('[') }

// EndArray closes an array.
func (w *Writer) EndArray() { w.close(']') }

// Name writes a member's name; its value comes next.
func (w *Writer) Name(name string) {
	w.lead()
	w.b = append(AppendString(w.b, name), ':')
	w.more = false
}

// Str writes a string.
func (w *Writer) Str(s string) { w.lead(); w.b = AppendString(w.b, s) }

// Int writes a whole number.
func (w *Writer) Int(n int64) { w.lead(); w.b = strconv.AppendInt(w.b, n, 10) }

// Bool writes true or false.
func (w *Writer) Bool(t bool) { w.lead(); w.b = strconv.AppendBool(w.b, t) }

// Value writes v.
func (w *Writer) Value(v Value) { w.lead(); w.b = v.Append(w.b) }

// Raw writes bytes that are one document already.
func (w *Writer) Raw(b []byte) { w.lead(); w.b = append(w.b, b...) }

// StrField writes a named string.
func (w *Writer) StrField(name, s string) { w.Name(name); w.Str(s) }

// OptField writes a named string unless it is empty.
func (w *Writer) OptField(name, s string) {
	if s != "" {
		w.StrField(name, s)
	}
}

// IntField writes a named whole number.
func (w *Writer) IntField(name string, n int64) { w.Name(name); w.Int(n) }

// BoolField writes a named boolean.
func (w *Writer) BoolField(name string, t bool) { w.Name(name); w.Bool(t) }

// Extra writes members kept from a document that was read.
func (w *Writer) Extra(members []Member) {
	for _, m := range members {
		w.Name(m.Name)
		w.Value(m.Value)
	}
}
