package install

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
)

// apply is the text with our entries, once and as wanted.
func (o *Options) apply(t target, src []byte) ([]byte, error) {
	if t.toml {
		block, err := tomlBlock(o.Command, append([]string{"mcp"}, o.Args...))
		if err != nil {
			return nil, err
		}
		return putBlock(src, block)
	}
	root, err := parse(src)
	if err != nil {
		return nil, err
	}
	if done, err := o.satisfied(t, src, root); err != nil || done {
		return src, err
	}
	out := src
	if root != nil {
		if out, err = o.strip(t, src, func([]string) bool { return true }); err != nil {
			return nil, err
		}
	}
	for _, m := range t.first {
		if root.get(m.name) == nil && root == nil {
			if out, err = put(out, []string{m.name}, m.doc); err != nil {
				return nil, err
			}
		}
	}
	if t.hooks != nil {
		for _, e := range t.hooks.events {
			doc, err := o.entry(t.hooks, e)
			if err != nil {
				return nil, err
			}
			if out, err = add(out, []string{"hooks", e.name}, doc); err != nil {
				return nil, err
			}
		}
	}
	if t.server != nil {
		doc, err := json.Marshal(t.server(o.Command, append([]string{"mcp"}, o.Args...)))
		if err != nil {
			return nil, err
		}
		if out, err = put(out, append(append([]string{}, t.servers...), serverName), doc); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (o *Options) entry(h *hookEntries, e hookEvent) (json.RawMessage, error) {
	command, limit := shellWord(o.Command)+" hook "+h.agent, lookWithin
	for _, arg := range o.Args {
		command += " " + shellWord(arg)
	}
	if e.asks {
		command += " --window " + o.Window.String()
		limit = o.Window + windowMargin
	}
	return json.Marshal(h.entry(e, command, limit))
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

func shellWord(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// satisfied reports that nothing of ours is missing, different or too much.
func (o *Options) satisfied(t target, src []byte, root *node) (bool, error) {
	if t.server != nil {
		old := root.at(append(append([]string{}, t.servers...), serverName))
		if old != nil && !ourServer(old.decode(src)) {
			return false, errForeign
		}
		doc, err := json.Marshal(t.server(o.Command, append([]string{"mcp"}, o.Args...)))
		if err != nil || old == nil || !equal(old.decode(src), doc) {
			return false, err
		}
	}
	if t.hooks == nil {
		return true, nil
	}
	found := 0
	for _, m := range membersOf(root.get("hooks")) {
		for _, item := range m.value.items {
			if t.hooks.ours(src, item) > 0 {
				found++
			}
		}
	}
	for _, e := range t.hooks.events {
		doc, err := o.entry(t.hooks, e)
		if err != nil {
			return false, err
		}
		list := root.at([]string{"hooks", e.name})
		if list == nil {
			return false, nil
		}
		have := false
		for _, item := range list.items {
			have = have || equal(item.decode(src), doc)
		}
		if !have {
			return false, nil
		}
	}
	return found == len(t.hooks.events), nil
}

func membersOf(n *node) []member {
	if n == nil {
		return nil
	}
	return n.members
}

func equal(v any, doc json.RawMessage) bool {
	var want any
	return json.Unmarshal(doc, &want) == nil && reflect.DeepEqual(v, want)
}

// ourServer reports an entry that starts this program's MCP server.
func ourServer(v any) bool {
	m, ok := v.(map[string]any)
	if !ok {
		return false
	}
	var words []any
	switch c := m["command"].(type) {
	case string:
		words = append(words, c)
		args, _ := m["args"].([]any)
		words = append(words, args...)
	case []any:
		words = c
	}
	if len(words) < 2 || words[1] != "mcp" {
		return false
	}
	program, ok := words[0].(string)
	return ok && strings.TrimSuffix(filepath.Base(program), ".exe") == "meanwhile"
}

// ours counts the commands of ours in one entry, and is -1 when others are
// beside them.
func (h *hookEntries) ours(src []byte, item *node) int {
	if ok, found := h.ourCommand(src, item); found {
		if ok {
			return 1
		}
		return 0
	}
	list := item.get("hooks")
	if list == nil {
		return 0
	}
	n := 0
	for _, hook := range list.items {
		if ok, _ := h.ourCommand(src, hook); ok {
			n++
		}
	}
	if n > 0 && n < len(list.items) {
		return -1
	}
	return n
}

// ourCommand reports whether a hook has a command, and whether it is ours.
func (h *hookEntries) ourCommand(src []byte, hook *node) (ok, found bool) {
	n := hook.get("command")
	if n == nil {
		return false, false
	}
	text, _ := n.decode(src).(string)
	program, rest, cut := strings.Cut(text, " hook "+h.agent)
	program = filepath.Base(strings.Trim(program, `'"`))
	return cut && strings.TrimSuffix(program, ".exe") == "meanwhile" && (rest == "" || rest[0] == ' '), true
}

// strip takes our entries out, and the containers that it leaves empty unless
// keep has them.
func (o *Options) strip(t target, src []byte, keep func(path []string) bool) ([]byte, error) {
	if t.toml {
		return dropBlock(src), nil
	}
	for {
		root, err := parse(src)
		if err != nil || root == nil {
			return src, err
		}
		path, in, value := o.first(t, src, root)
		if value == nil {
			return src, nil
		}
		src = drop(src, in, value)
		// Upwards from where the entry stood.
		for ; len(path) > 0; path = path[:len(path)-1] {
			if root, err = parse(src); err != nil {
				return nil, err
			}
			n := root.at(path)
			if n == nil || len(n.members)+len(n.items) > 0 || keep != nil && keep(path) {
				break
			}
			src = drop(src, root.at(path[:len(path)-1]), n)
		}
	}
}

// first is the first entry of ours: the path of its container, the container
// itself and the entry.
func (o *Options) first(t target, src []byte, root *node) (path []string, in, value *node) {
	if t.server != nil {
		in := root.at(t.servers)
		if old := in.get(serverName); old != nil && ourServer(old.decode(src)) {
			return append([]string{}, t.servers...), in, old
		}
	}
	if t.hooks == nil {
		return nil, nil, nil
	}
	for _, m := range membersOf(root.get("hooks")) {
		for _, item := range m.value.items {
			switch n := t.hooks.ours(src, item); {
			case n > 0:
				return []string{"hooks", m.name}, m.value, item
			case n < 0:
				list := item.get("hooks")
				for _, hook := range list.items {
					if ok, _ := t.hooks.ourCommand(src, hook); ok {
						return nil, list, hook // others stay in the list
					}
				}
			}
		}
	}
	return nil, nil, nil
}

// undo is the text without our entries; nil when the file was ours alone.
func (o *Options) undo(t target, src, kept []byte) ([]byte, error) {
	if kept != nil {
		if whole, err := o.apply(t, kept); err == nil && bytes.Equal(whole, src) {
			return kept, nil
		}
	}
	var was *node
	if kept != nil && !t.toml {
		was, _ = parse(kept) // one that cannot be read kept nothing
	}
	out, err := o.strip(t, src, func(path []string) bool { return was.at(path) != nil })
	if err != nil || kept != nil {
		return out, err
	}
	if bytes.Equal(out, src) {
		return src, nil // nothing of ours
	}
	if t.toml {
		if len(bytes.TrimSpace(out)) == 0 {
			return nil, nil
		}
		return out, nil
	}
	root, err := parse(out)
	if err != nil {
		return nil, err
	}
	for _, m := range membersOf(root) {
		boilerplate := false
		for _, f := range t.first {
			boilerplate = boilerplate || f.name == m.name && equal(m.value.decode(out), f.doc)
		}
		if !boilerplate {
			return out, nil
		}
	}
	return nil, nil
}
