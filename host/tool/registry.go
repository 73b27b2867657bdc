package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
)

// MaxTools bounds one registry: providers refuse long tool lists.
const MaxTools = 128

// maxName is the longest tool name every provider takes.
const maxName = 64

// Codes of the errors a registry makes itself.
const (
	CodeUnknown  = "UNKNOWN_TOOL"
	CodePanicked = "TOOL_PANICKED"
)

// Registry is the fixed set of tools one agent has.
type Registry struct {
	tools map[string]Tool
	specs []Spec
}

// NewRegistry builds a registry in the order given. It refuses a name used
// twice, a name a provider would refuse, and parameters that are not a JSON
// object.
func NewRegistry(tools ...Tool) (*Registry, error) {
	if len(tools) > MaxTools {
		return nil, fmt.Errorf("tool registry: %d tools, at most %d", len(tools), MaxTools)
	}
	r := &Registry{tools: make(map[string]Tool, len(tools)), specs: make([]Spec, 0, len(tools))}
	for _, t := range tools {
		s := t.Spec()
		if err := check(s); err != nil {
			return nil, fmt.Errorf("tool registry: %w", err)
		}
		if _, dup := r.tools[s.Name]; dup {
			return nil, fmt.Errorf("tool registry: two tools named %q", s.Name)
		}
		r.tools[s.Name] = t
		r.specs = append(r.specs, s)
	}
	return r, nil
}

// Specs returns the tools' descriptions in registration order. The order is
// part of the request to the model, so it must not vary between steps.
func (r *Registry) Specs() []Spec { return append([]Spec(nil), r.specs...) }

// Get returns the tool of that name.
func (r *Registry) Get(name string) (Tool, bool) {
	t, ok := r.tools[name]
	return t, ok
}

// Run runs the tool a call names. An unknown name is an *Error that lists what
// there is; a panic in a tool is an *Error too, so that one faulty tool cannot
// take the other sessions down. The stack is in a *PanicError below it.
func (r *Registry) Run(ctx context.Context, c Call) (res Result, err error) {
	t, ok := r.tools[c.Name]
	if !ok {
		return Result{}, &Error{Name: "ToolError", Code: CodeUnknown, Message: r.unknown(c.Name)}
	}
	defer func() {
		if p := recover(); p != nil {
			res = Result{}
			err = errors.Join(
				&Error{Name: "ToolError", Code: CodePanicked, Message: "the tool " + c.Name + " failed inside; it may have done part of its work, so check before trying again"},
				&PanicError{Tool: c.Name, Value: p, Stack: debug.Stack()},
			)
		}
	}()
	return t.Run(ctx, c)
}

func (r *Registry) unknown(name string) string {
	names := make([]string, len(r.specs))
	for i, s := range r.specs {
		names[i] = s.Name
	}
	if len(name) > maxName {
		name = strings.ToValidUTF8(name[:maxName], "") + "…"
	}
	if len(names) == 0 {
		return fmt.Sprintf("there is no tool named %q; this agent has no tools", name)
	}
	return fmt.Sprintf("there is no tool named %q; call one of: %s", name, strings.Join(names, ", "))
}

// PanicError carries what a tool panicked with, for the log.
type PanicError struct {
	Tool  string
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("tool %s panicked: %v", e.Tool, e.Value) }

func check(s Spec) error {
	if s.Name == "" || len(s.Name) > maxName {
		return fmt.Errorf("name %q: must have 1 to %d characters", s.Name, maxName)
	}
	for _, c := range []byte(s.Name) {
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return fmt.Errorf("name %q: only letters, digits, _ and - are allowed", s.Name)
		}
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(s.Parameters, &object); err != nil || object == nil {
		return fmt.Errorf("tool %s: parameters must be a JSON Schema object", s.Name)
	}
	return nil
}
