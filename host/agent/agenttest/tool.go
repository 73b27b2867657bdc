package agenttest

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"meanwhile/host/tool"
)

// Func is a tool made of a function.
type Func struct {
	Name string
	Do   func(ctx context.Context, c tool.Call) (tool.Result, error)
}

// Spec describes a tool that takes any object.
func (f Func) Spec() tool.Spec {
	return tool.Spec{Name: f.Name, Description: "A tool of a test.", Parameters: json.RawMessage(`{"type":"object"}`)}
}

// Run calls the function.
func (f Func) Run(ctx context.Context, c tool.Call) (tool.Result, error) { return f.Do(ctx, c) }

// Gate is a tool whose runs wait until the test lets them go, and heed their
// cancellation.
type Gate struct {
	name string

	mu      sync.Mutex
	running map[string]chan string
	started []string
}

// NewGate returns a gate under a tool name.
func NewGate(name string) *Gate { return &Gate{name: name, running: map[string]chan string{}} }

// Spec describes a tool that takes any object.
func (g *Gate) Spec() tool.Spec { return Func{Name: g.name}.Spec() }

// Run waits.
func (g *Gate) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	open := make(chan string, 1)
	g.mu.Lock()
	g.running[c.CallID] = open
	g.started = append(g.started, c.CallID)
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		delete(g.running, c.CallID)
		g.mu.Unlock()
	}()
	select {
	case text := <-open:
		return tool.Result{Text: text}, nil
	case <-ctx.Done():
		return tool.Result{}, &tool.Error{Name: "GateError", Code: "GATE_ABORTED", Message: "The gate was given up."}
	}
}

// Open lets a run return with a text; false when none of that call waits.
func (g *Gate) Open(callID, text string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	open, ok := g.running[callID]
	if ok {
		open <- text
		delete(g.running, callID)
	}
	return ok
}

// Running returns the calls that wait, sorted.
func (g *Gate) Running() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []string
	for id := range g.running {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

// Started returns every call that ever ran, in order.
func (g *Gate) Started() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.started)
}
