package install

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// depthMax is how deep a settings file may nest.
const depthMax = 64

// errShape is a member that is there and is no container of the kind wanted.
var errShape = errors.New("has another shape than this agent documents; correct it or move it away")

// node is a JSON value with its place in the text. Comments and trailing commas
// are allowed, as in the settings of some agents.
type node struct {
	kind       byte // '{', '[', or 'v'
	start, end int
	members    []member
	items      []*node
}

type member struct {
	name  string
	start int // of the name
	value *node
}

func (n *node) get(name string) *node {
	if n == nil {
		return nil
	}
	for _, m := range n.members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// at is the node at a path of names, or nil.
func (n *node) at(path []string) *node {
	for _, name := range path {
		n = n.get(name)
	}
	return n
}

// scanner reads a text with comments.
type scanner struct {
	src []byte
	i   int
}

func (s *scanner) fail(what string) error {
	line := 1 + bytes.Count(s.src[:min(s.i, len(s.src))], []byte("\n"))
	return fmt.Errorf("line %d: %s", line, what)
}

// space skips white space and comments.
func (s *scanner) space() {
	for s.i < len(s.src) {
		rest := s.src[s.i:]
		switch {
		case strings.IndexByte(" \t\r\n", rest[0]) >= 0:
			s.i++
		case bytes.HasPrefix(rest, []byte("\xef\xbb\xbf")) && s.i == 0:
			s.i += 3
		case bytes.HasPrefix(rest, []byte("//")):
			if n := bytes.IndexByte(rest, '\n'); n >= 0 {
				s.i += n
			} else {
				s.i = len(s.src)
			}
		case bytes.HasPrefix(rest, []byte("/*")):
			if n := bytes.Index(rest, []byte("*/")); n >= 0 {
				s.i += n + 2
			} else {
				return // without an end it is none
			}
		default:
			return
		}
	}
}

func (s *scanner) peek() byte {
	if s.i < len(s.src) {
		return s.src[s.i]
	}
	return 0
}

// parse reads a whole text; a text without a value is nil.
func parse(src []byte) (*node, error) {
	s := &scanner{src: src}
	s.space()
	if s.i == len(src) {
		return nil, nil
	}
	n, err := s.value(0)
	if err != nil {
		return nil, err
	}
	if s.space(); s.i != len(src) {
		return nil, s.fail("something stands behind the value")
	}
	return n, nil
}

func (s *scanner) value(depth int) (*node, error) {
	if depth > depthMax {
		return nil, s.fail("it is nested too deep")
	}
	n := &node{kind: 'v', start: s.i}
	var err error
	switch c := s.peek(); c {
	case '{', '[':
		n.kind = c
		err = s.container(n, depth)
	case '"':
		_, err = s.text()
	default:
		for s.i < len(s.src) && strings.IndexByte(",]} \t\r\n/", s.src[s.i]) < 0 {
			s.i++
		}
		if !json.Valid(s.src[n.start:s.i]) {
			err = s.fail("this is no JSON value")
		}
	}
	n.end = s.i
	return n, err
}

func (s *scanner) container(n *node, depth int) error {
	closing := byte('}')
	if n.kind == '[' {
		closing = ']'
	}
	s.i++
	for {
		if s.space(); s.peek() == closing {
			s.i++
			return nil
		}
		m := member{start: s.i}
		if n.kind == '{' {
			if s.peek() != '"' {
				return s.fail("a member's name is missing")
			}
			var err error
			if m.name, err = s.text(); err != nil {
				return err
			}
			if s.space(); s.peek() != ':' {
				return s.fail("a colon is missing")
			}
			s.i++
			s.space()
		}
		v, err := s.value(depth + 1)
		if err != nil {
			return err
		}
		if m.value = v; n.kind == '{' {
			n.members = append(n.members, m)
		} else {
			n.items = append(n.items, v)
		}
		switch s.space(); s.peek() {
		case ',':
			s.i++
		case closing:
		default:
			return s.fail("a comma or an end is missing")
		}
	}
}

func (s *scanner) text() (string, error) {
	start := s.i
	for s.i++; s.i < len(s.src); s.i++ {
		switch s.src[s.i] {
		case '\\':
			s.i++
		case '"':
			s.i++
			var out string
			if err := json.Unmarshal(s.src[start:s.i], &out); err != nil {
				return "", s.fail("this is no JSON text")
			}
			return out, nil
		}
	}
	return "", s.fail("a text has no end")
}

// decode is the value without comments.
func (n *node) decode(src []byte) any {
	switch {
	case n == nil:
		return nil
	case n.kind == '{':
		out := map[string]any{}
		for _, m := range n.members {
			out[m.name] = m.value.decode(src)
		}
		return out
	case n.kind == '[':
		out := []any{}
		for _, item := range n.items {
			out = append(out, item.decode(src))
		}
		return out
	}
	var v any
	_ = json.Unmarshal(src[n.start:n.end], &v) // it was read as JSON before
	return v
}

// put sets the member at a path, making the objects on the way.
func put(src []byte, path []string, doc json.RawMessage) ([]byte, error) {
	src, parent, err := object(src, path[:len(path)-1])
	if err != nil {
		return nil, err
	}
	name := path[len(path)-1]
	if old := parent.get(name); old != nil {
		return splice(src, old.start, old.end, indented(src, parent, doc)), nil
	}
	return insert(src, parent, name, doc), nil
}

// add appends an item to the array at a path, making it and what is around it.
func add(src []byte, path []string, doc json.RawMessage) ([]byte, error) {
	src, parent, err := object(src, path[:len(path)-1])
	if err != nil {
		return nil, err
	}
	list := parent.get(path[len(path)-1])
	switch {
	case list == nil:
		return insert(src, parent, path[len(path)-1], append(append(json.RawMessage("["), doc...), ']')), nil
	case list.kind != '[':
		return nil, fmt.Errorf("%s %w", strings.Join(path, "."), errShape)
	}
	return insert(src, list, "", doc), nil
}

// object finds the object at a path or makes it.
func object(src []byte, path []string) ([]byte, *node, error) {
	root, err := parse(src)
	if err != nil {
		return nil, nil, err
	}
	if root == nil {
		if len(bytes.TrimSpace(src)) > 0 && !bytes.HasSuffix(src, []byte("\n")) {
			src = append(bytes.Clone(src), '\n') // behind a comment
		}
		return object(append(bytes.Clone(src), "{}\n"...), path)
	}
	n := root
	for i, name := range path {
		if n.kind != '{' {
			return nil, nil, fmt.Errorf("%s %w", strings.Join(path[:i], "."), errShape)
		}
		next := n.get(name)
		if next == nil {
			return object(insert(src, n, name, json.RawMessage("{}")), path)
		}
		n = next
	}
	if n.kind != '{' {
		return nil, nil, fmt.Errorf("%s %w", strings.Join(append([]string{"the file"}, path...), "."), errShape)
	}
	return src, n, nil
}

// insert puts a member or an item at the end of a container.
func insert(src []byte, in *node, name string, doc json.RawMessage) []byte {
	text := indented(src, in, doc)
	if in.kind == '{' {
		quoted, _ := json.Marshal(name) // a text always encodes
		text = string(quoted) + ": " + text
	}
	inner := margin(src, in.start) + unit(src)
	// The last token or comment inside, behind which the new line goes.
	tail, last := in.start+1, 0
	if n := len(in.members); n > 0 {
		last = in.members[n-1].value.end
	}
	if n := len(in.items); n > 0 {
		last = in.items[n-1].end
	}
	comma := false
	for i := max(tail, last); i < in.end-1; {
		if src[i] == ',' {
			comma = true
			i++
			tail = i
			continue
		}
		s := &scanner{src: src[:in.end-1], i: i}
		if strings.IndexByte(" \t\r\n", src[i]) >= 0 {
			i++
			continue
		}
		if s.space(); s.i == i {
			break
		}
		tail = len(bytes.TrimRight(src[:s.i], " \t\r\n"))
		i = s.i
	}
	tail = max(tail, last)
	end := ""
	if !bytes.Contains(src[tail:in.end-1], []byte("\n")) {
		end = "\n" + margin(src, in.start)
	}
	out := splice(src, tail, tail, "\n"+inner+text+end)
	if last > 0 && !comma {
		out = splice(out, last, last, ",")
	}
	return out
}

// drop removes the member or item that is value from its container.
func drop(src []byte, in *node, value *node) []byte {
	starts, values := in.places()
	i := 0
	for values[i] != value {
		i++
	}
	cut := func(from, to int) { src = splice(src, from, to, "") }
	// Behind the value: its comma.
	end := value.end
	s := &scanner{src: src, i: end}
	if s.space(); s.peek() == ',' {
		end = s.i + 1
	}
	lead := starts[i]
	lead = len(bytes.TrimRight(src[:lead], " \t\r\n"))
	comma := -1
	if i == len(values)-1 && i > 0 && end == value.end {
		// The last one without a comma: the one before must lose its own.
		c := &scanner{src: src, i: values[i-1].end}
		if c.space(); c.peek() == ',' {
			comma = c.i
		}
	}
	left := ""
	next := &scanner{src: src, i: end}
	for next.i < len(src) && strings.IndexByte(" \t\r", next.peek()) >= 0 {
		next.i++
	}
	if bytes.Contains(src[lead:starts[i]], []byte("\n")) && next.peek() != '\n' {
		left = "\n" // or what follows would join a comment
	}
	src = splice(src, lead, end, left)
	if comma >= 0 {
		cut(comma, comma+1)
	}
	if len(values) == 1 {
		if fresh, err := parse(src); err == nil && fresh != nil {
			if n := fresh.find(in.start); n != nil && len(bytes.TrimSpace(src[n.start+1:n.end-1])) == 0 {
				cut(n.start+1, n.end-1)
			}
		}
	}
	return src
}

// places lists where each member or item starts, and its value.
func (n *node) places() (starts []int, values []*node) {
	for _, m := range n.members {
		starts, values = append(starts, m.start), append(values, m.value)
	}
	for _, item := range n.items {
		starts, values = append(starts, item.start), append(values, item)
	}
	return starts, values
}

// find is the node that starts at a place.
func (n *node) find(start int) *node {
	if n.start == start {
		return n
	}
	_, values := n.places()
	for _, v := range values {
		if v.start <= start && start < v.end {
			return v.find(start)
		}
	}
	return nil
}

func splice(src []byte, from, to int, text string) []byte {
	out := make([]byte, 0, len(src)+len(text))
	out = append(out, src[:from]...)
	out = append(out, text...)
	return append(out, src[to:]...)
}

// indented is a document as it stands inside a container.
func indented(src []byte, in *node, doc json.RawMessage) string {
	var out bytes.Buffer
	step := unit(src)
	if err := json.Indent(&out, doc, margin(src, in.start)+step, step); err != nil {
		return string(doc)
	}
	return out.String()
}

// margin is the white space that the line of a place begins with.
func margin(src []byte, at int) string {
	line := src[bytes.LastIndexByte(src[:at], '\n')+1 : at]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// unit is one step of the file's indentation: that of its first indented line.
func unit(src []byte) string {
	for line := range bytes.Lines(src) {
		rest := bytes.TrimLeft(line, " \t")
		if n := len(line) - len(rest); n > 0 && n <= 8 && len(bytes.TrimSpace(rest)) > 0 && rest[0] == '"' {
			return string(line[:n])
		}
	}
	return "  "
}
