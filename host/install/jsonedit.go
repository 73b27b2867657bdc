package install

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

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
