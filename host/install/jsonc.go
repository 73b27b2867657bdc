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
