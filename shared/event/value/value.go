package value

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
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
func Parse(b []byte) (Value, error) { return ParseString(string(b)) }

// ParseString is Parse for a string.
func ParseString(s string) (Value, error) {
	p := parser{s: s}
	p.space()
	v := p.value(0)
	if p.space(); p.msg == "" && p.at < len(s) {
		p.fail("data after the document")
	}
	if p.msg != "" {
		return Value{}, &SyntaxError{int64(p.at), p.msg}
	}
	return v, nil
}

// parser reads s from at. After a fault msg is set, at is where it is, and
// nothing more is read.
type parser struct {
	s   string
	at  int
	msg string

	// What is read of the arrays, objects and the string that are not at their
	// end: each is then copied once, in its own size.
	items   []Value
	members []Member
	text    []byte
}

func (p *parser) fail(msg string) {
	if p.msg == "" {
		p.msg = msg
		if p.at >= len(p.s) {
			p.msg = "the document ends early"
		}
	}
}

func (p *parser) peek() byte {
	if p.msg == "" && p.at < len(p.s) {
		return p.s[p.at]
	}
	return 0
}

func (p *parser) space() {
	if p.msg != "" {
		return
	}
	for ; p.at < len(p.s); p.at++ {
		if c := p.s[p.at]; c > ' ' || c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return
		}
	}
}

// take skips c and the white space around it, if it comes next.
func (p *parser) take(c byte) bool {
	p.space()
	if p.msg != "" || p.at >= len(p.s) || p.s[p.at] != c {
		return false
	}
	p.at++
	p.space()
	return true
}

func (p *parser) word(w string, v Value) Value {
	if len(p.s)-p.at >= len(w) && p.s[p.at:p.at+len(w)] == w {
		p.at += len(w)
		return v
	}
	p.fail("not a JSON value")
	return Value{}
}

func (p *parser) value(depth int) Value {
	switch c := p.peek(); {
	case c == 'n':
		return p.word("null", Value{kind: Null})
	case c == 't':
		return p.word("true", OfBool(true))
	case c == 'f':
		return p.word("false", OfBool(false))
	case c == '"':
		return OfString(p.string())
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	case c != '[' && c != '{':
		p.fail("not a JSON value")
		return Value{}
	case depth == DepthMax:
		p.fail("nested deeper than " + strconv.Itoa(DepthMax))
		return Value{}
	case c == '[':
		return p.array(depth)
	}
	return p.object(depth)
}

func (p *parser) array(depth int) Value {
	v := Value{kind: Array}
	p.take('[')
	if p.take(']') {
		return v
	}
	base := len(p.items)
	for {
		item := p.value(depth + 1) // it uses p.items too
		p.items = append(p.items, item)
		if !p.take(',') {
			break
		}
	}
	v.items = append(make([]Value, 0, len(p.items)-base), p.items[base:]...)
	p.items = p.items[:base]
	if !p.take(']') {
		p.fail("an array goes on with , or ends with ]")
	}
	return v
}

func (p *parser) object(depth int) Value {
	v := Value{kind: Object}
	var names map[string]bool // beyond a few members, a scan would be quadratic
	p.take('{')
	if p.take('}') {
		return v
	}
	if p.members == nil {
		p.members = make([]Member, 0, 8)
	}
	base := len(p.members)
	for p.msg == "" {
		start := p.at
		if p.peek() != '"' {
			p.fail("a member's name is missing")
			break
		}
		m := Member{Name: p.string()}
		if has(p.members[base:], m.Name, &names) {
			p.at = start
			p.fail("a member's name stands twice")
			break
		}
		if !p.take(':') {
			p.fail("a colon is missing")
		}
		m.Value = p.value(depth + 1)
		p.members = append(p.members, m)
		if !p.take(',') {
			break
		}
	}
	v.members = append(make([]Member, 0, len(p.members)-base), p.members[base:]...)
	p.members = p.members[:base]
	if !p.take('}') {
		p.fail("an object goes on with , or ends with }")
	}
	return v
}

const scanMax = 16

func has(members []Member, name string, names *map[string]bool) bool {
	if len(members) < scanMax {
		for i := range members {
			if members[i].Name == name {
				return true
			}
		}
		return false
	}
	if *names == nil {
		*names = map[string]bool{}
		for _, m := range members {
			(*names)[m.Name] = true
		}
	}
	if (*names)[name] {
		return true
	}
	(*names)[name] = true
	return false
}

func (p *parser) digits() {
	if c := p.peek(); c < '0' || c > '9' {
		p.fail("a digit is missing")
	}
	for c := p.peek(); c >= '0' && c <= '9'; c = p.peek() {
		p.at++
	}
}

func (p *parser) number() Value {
	start := p.at
	if p.peek() == '-' {
		p.at++
	}
	if p.peek() == '0' {
		p.at++
	} else {
		p.digits()
	}
	if p.peek() == '.' {
		p.at++
		p.digits()
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		p.at++
		if c := p.peek(); c == '+' || c == '-' {
			p.at++
		}
		p.digits()
	}
	return Value{kind: Number, text: p.s[start:p.at]}
}

// string reads a string from its opening quote to past the closing one.
func (p *parser) string() string {
	p.at++
	start, whole := p.at, p.s
	out, escaped := p.text[:0], false
	for p.at < len(whole) {
		c := whole[p.at]
		for c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			if p.at++; p.at == len(whole) {
				p.fail("")
				return ""
			}
			c = whole[p.at]
		}
		switch {
		case c == '"':
			text := whole[start:p.at]
			p.at++
			if escaped {
				p.text = append(out, text...)
				return string(p.text)
			}
			return text
		case c < ' ':
			p.fail("a control character stands in a string")
			return ""
		case c == '\\':
			out = append(out, whole[start:p.at]...)
			out, escaped = p.escape(out), true
			if p.msg != "" {
				return ""
			}
			start = p.at
		default:
			r, n := utf8.DecodeRuneInString(whole[p.at:])
			if r == utf8.RuneError && n == 1 {
				p.fail("invalid UTF-8 in a string")
				return ""
			}
			p.at += n
		}
	}
	p.fail("")
	return ""
}

const plainEscapes = "\"\"\\\\//b\bf\fn\nr\rt\t" // pairs: the letter, what it means

func (p *parser) escape(out []byte) []byte {
	p.at++
	c := p.peek()
	for i := 0; i < len(plainEscapes); i += 2 {
		if plainEscapes[i] == c {
			p.at++
			return append(out, plainEscapes[i+1])
		}
	}
	if c != 'u' {
		p.fail("an escape that JSON does not have")
		return out
	}
	p.at++
	r := p.hex()
	if utf16.IsSurrogate(r) {
		low := rune(0)
		if p.peek() == '\\' {
			if p.at++; p.peek() == 'u' {
				p.at++
				low = p.hex()
			}
		}
		if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
			p.fail("half a surrogate pair in a string")
		}
	}
	return utf8.AppendRune(out, r)
}

func (p *parser) hex() rune {
	var r rune
	for range 4 {
		c := p.peek()
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			p.fail("four hexadecimal digits are missing")
			return 0
		}
		r = r<<4 | rune(c)
		p.at++
	}
	return r
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
