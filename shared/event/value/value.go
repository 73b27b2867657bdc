package value

import (
	"bytes"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// DepthMax is the deepest nesting that Parse accepts; nothing on our wire
// needs more than a dozen, and a deep document is an attack on the stack.
const DepthMax = 64

// Kind says what a Value is.
type Kind uint8

// The kinds; Missing is the zero Value, an absent member for instance.
const (
	Missing Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

// Value is one JSON value.
type Value struct {
	kind    Kind
	text    string // String: decoded; Number: literal; Bool: "true" or "false"
	items   []Value
	members []Member
}

// Member is one named value of an object.
type Member struct {
	Name  string
	Value Value
}

// SyntaxError says why a document was refused and near which byte.
type SyntaxError struct {
	Offset int64
	Msg    string
}

func (e *SyntaxError) Error() string {
	return "invalid JSON near byte " + strconv.FormatInt(e.Offset, 10) + ": " + e.Msg
}

// Parse reads exactly one document. Any refusal is a *SyntaxError.
func Parse(b []byte) (Value, error) {
	p := parser{dec: jsontext.NewDecoder(bytes.NewReader(b))}
	v, err := p.value(0)
	if err != nil {
		return Value{}, p.refuse(err)
	}
	if _, err := p.dec.ReadToken(); err != io.EOF {
		return Value{}, &SyntaxError{p.dec.InputOffset(), "data after the document"}
	}
	return v, nil
}

// ParseString is Parse for a string.
func ParseString(s string) (Value, error) { return Parse([]byte(s)) }

type parser struct{ dec *jsontext.Decoder }

func (p *parser) refuse(err error) error {
	if e, ok := err.(*SyntaxError); ok {
		return e
	}
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return &SyntaxError{p.dec.InputOffset(), "the document ends early"}
	}
	return &SyntaxError{p.dec.InputOffset(), err.Error()}
}

func (p *parser) value(depth int) (Value, error) {
	tok, err := p.dec.ReadToken()
	if err != nil {
		return Value{}, err
	}
	switch tok.Kind() {
	case 'n':
		return Value{kind: Null}, nil
	case 't', 'f':
		return OfBool(tok.Bool()), nil
	case '"':
		return Value{kind: String, text: tok.String()}, nil
	case '0':
		return Value{kind: Number, text: tok.String()}, nil
	}
	if depth == DepthMax {
		return Value{}, &SyntaxError{p.dec.InputOffset(), "nested deeper than " + strconv.Itoa(DepthMax)}
	}
	if tok.Kind() == '[' {
		v := Value{kind: Array}
		for p.dec.PeekKind() != ']' {
			item, err := p.value(depth + 1)
			if err != nil {
				return Value{}, err
			}
			v.items = append(v.items, item)
		}
		_, err := p.dec.ReadToken()
		return v, err
	}
	v := Value{kind: Object}
	for p.dec.PeekKind() != '}' {
		name, err := p.dec.ReadToken()
		if err != nil {
			return Value{}, err
		}
		m := Member{Name: name.String()}
		if m.Value, err = p.value(depth + 1); err != nil {
			return Value{}, err
		}
		v.members = append(v.members, m)
	}
	_, err = p.dec.ReadToken()
	return v, err
}

// OfString is a string value; invalid UTF-8 is replaced when it is written.
func OfString(s string) Value { return Value{kind: String, text: s} }

// OfInt is a number value.
func OfInt(n int64) Value { return Value{kind: Number, text: strconv.FormatInt(n, 10)} }

// OfBool is a boolean value.
func OfBool(b bool) Value { return Value{kind: Bool, text: strconv.FormatBool(b)} }

// OfArray is an array of items; it keeps the slice.
func OfArray(items ...Value) Value { return Value{kind: Array, items: items} }

// OfObject is an object of members; it keeps the slice, and the caller answers
// for distinct names.
func OfObject(members ...Member) Value { return Value{kind: Object, members: members} }

// Kind says what v is.
func (v Value) Kind() Kind { return v.kind }

// Get returns the named member of an object, else a Missing value.
func (v Value) Get(name string) Value {
	for _, m := range v.members {
		if m.Name == name {
			return m.Value
		}
	}
	return Value{}
}

// Str returns a string's text, and whether v is a string.
func (v Value) Str() (string, bool) {
	if v.kind != String {
		return "", false
	}
	return v.text, true
}

// Text returns a string's text, else "".
func (v Value) Text() string { s, _ := v.Str(); return s }

// Int returns a whole number written without fraction or exponent, and whether
// v is one that fits.
func (v Value) Int() (int64, bool) {
	if v.kind != Number {
		return 0, false
	}
	n, err := strconv.ParseInt(v.text, 10, 64)
	return n, err == nil
}

// True reports whether v is the literal true.
func (v Value) True() bool { return v.kind == Bool && v.text == "true" }

// Items returns an array's items, not to be changed.
func (v Value) Items() []Value { return v.items }

// Members returns an object's members in their order, not to be changed.
func (v Value) Members() []Member { return v.members }

// With returns a copy of an object with name set to w.
func (v Value) With(name string, w Value) Value {
	out := Value{kind: Object, members: make([]Member, 0, len(v.members)+1)}
	found := false
	for _, m := range v.members {
		if m.Name == name {
			m.Value, found = w, true
		}
		out.members = append(out.members, m)
	}
	if !found {
		out.members = append(out.members, Member{name, w})
	}
	return out
}

// Extra returns the members of an object that are not among known.
func (v Value) Extra(known ...string) []Member {
	var extra []Member
next:
	for _, m := range v.members {
		for _, k := range known {
			if m.Name == k {
				continue next
			}
		}
		extra = append(extra, m)
	}
	return extra
}

// Append writes v without white space. A Missing value is written as null.
func (v Value) Append(b []byte) []byte {
	switch v.kind {
	case Bool, Number:
		return append(b, v.text...)
	case String:
		return AppendString(b, v.text)
	case Array:
		b = append(b, '[')
		for i, item := range v.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = item.Append(b)
		}
		return append(b, ']')
	case Object:
		b = append(b, '{')
		for i, m := range v.members {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(AppendString(b, m.Name), ':')
			b = m.Value.Append(b)
		}
		return append(b, '}')
	}
	return append(b, "null"...)
}

// Bytes is Append to a new slice.
func (v Value) Bytes() []byte { return v.Append(nil) }
