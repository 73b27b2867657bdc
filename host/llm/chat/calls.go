package chat

import (
	"encoding/json"
	"errors"

	"meanwhile/host/llm"
)

// toolDelta is one entry of delta.tool_calls.
type toolDelta struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

// arguments returns the piece of arguments: a string nearly everywhere, a
// whole object from some servers.
func (d *toolDelta) arguments() (string, error) {
	raw := d.Function.Arguments
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil
	}
	if raw[0] != '"' {
		return string(raw), nil
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err
}

// calls tells the tool calls of one response apart.
type calls struct {
	list []*call // our index is the place in it
}

type call struct {
	wire int // the provider's index, -1 without one
	id   string
	name string
	args []byte
}

// take turns a provider's delta into ours.
func (cs *calls) take(d *toolDelta) (llm.Chunk, error) {
	args, err := d.arguments()
	if err != nil {
		return llm.Chunk{}, err
	}
	i := cs.find(d, args)
	if i < 0 {
		if len(cs.list) == llm.MaxCalls {
			return llm.Chunk{}, errors.New("too many tool calls")
		}
		wire := -1
		if d.Index != nil {
			wire = *d.Index
		}
		if d.ID == "" && d.Function.Name == "" && len(cs.list) == 0 && wire < 0 {
			return llm.Chunk{}, errors.New("a tool call that begins with neither index, id nor name")
		}
		i = len(cs.list)
		cs.list = append(cs.list, &call{wire: wire})
	}
	c := cs.list[i]
	out := llm.Chunk{Kind: llm.ToolCallDelta, Index: i, Arguments: args}
	if c.id == "" {
		c.id, out.CallID = d.ID, d.ID
	}
	if c.name == "" {
		c.name, out.Name = d.Function.Name, d.Function.Name
	}
	if len(c.args)+len(args) > llm.MaxArguments {
		return llm.Chunk{}, errors.New("tool arguments over the limit")
	}
	c.args = append(c.args, args...)
	return out, nil
}

// find returns the call a delta continues, or -1 for a new one.
func (cs *calls) find(d *toolDelta, args string) int {
	i := len(cs.list) - 1
	if d.Index != nil {
		// The latest at that index: two calls may share one.
		for i >= 0 && cs.list[i].wire != *d.Index {
			i--
		}
	} else if d.ID != "" {
		for j, c := range cs.list {
			if c.id == d.ID {
				return j
			}
		}
	}
	if i < 0 || cs.begins(cs.list[i], d, args) {
		return -1
	}
	return i
}

// begins reports whether a delta at the place of c starts another call. A
// fresh id alone does not, some servers draw one for every delta; nor does a
// name alone, some repeat it, unless what is there is already whole.
func (cs *calls) begins(c *call, d *toolDelta, args string) bool {
	switch {
	case d.Function.Name == "":
		return false
	case d.ID != "":
		return c.id != "" && c.id != d.ID
	}
	return args != "" && json.Valid(c.args)
}

// check reports a call that can never be run.
func (cs *calls) check() error {
	for _, c := range cs.list {
		if c.name == "" {
			return errors.New("a tool call without a name")
		}
	}
	return nil
}
