package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// fake is a tool that does what do says.
type fake struct {
	name, parameters string
	do               func(context.Context, Call) (Result, error)
}

func (f fake) Spec() Spec {
	p := f.parameters
	if p == "" {
		p = `{"type":"object"}`
	}
	return Spec{Name: f.name, Parameters: json.RawMessage(p)}
}

func (f fake) Run(ctx context.Context, c Call) (Result, error) { return f.do(ctx, c) }

func TestNewRegistryRefuses(t *testing.T) {
	many := make([]Tool, MaxTools+1)
	for i := range many {
		many[i] = fake{name: fmt.Sprint("t", i)}
	}
	tests := []struct {
		name  string
		tools []Tool
	}{
		{name: "no name", tools: []Tool{fake{}}},
		{name: "long name", tools: []Tool{fake{name: strings.Repeat("a", 65)}}},
		{name: "a space", tools: []Tool{fake{name: "a b"}}},
		{name: "a dot", tools: []Tool{fake{name: "a.b"}}},
		{name: "twice", tools: []Tool{fake{name: "a"}, fake{name: "a"}}},
		{name: "parameters not json", tools: []Tool{fake{name: "a", parameters: "{"}}},
		{name: "parameters no object", tools: []Tool{fake{name: "a", parameters: "[]"}}},
		{name: "parameters null", tools: []Tool{fake{name: "a", parameters: "null"}}},
		{name: "too many", tools: many},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := NewRegistry(tt.tools...); err == nil {
				t.Error("accepted")
			}
		})
	}
	if _, err := NewRegistry(many[:MaxTools]...); err != nil {
		t.Errorf("%d tools: %v", MaxTools, err)
	}
}

func TestRegistry(t *testing.T) {
	want := errors.New("own error")
	r, err := NewRegistry(
		fake{name: "zeta", do: func(_ context.Context, c Call) (Result, error) { return Result{Text: c.Arguments}, nil }},
		fake{name: "alpha-1_", do: func(context.Context, Call) (Result, error) { return Result{}, want }},
		fake{name: "bad", do: func(context.Context, Call) (Result, error) { panic("ouch") }},
	)
	if err != nil {
		t.Fatal(err)
	}
	specs := r.Specs()
	if len(specs) != 3 || specs[0].Name != "zeta" || specs[1].Name != "alpha-1_" {
		t.Errorf("specs %v are not in the order given", specs)
	}
	specs[0].Name = "changed"
	if got := r.Specs()[0].Name; got != "zeta" {
		t.Error("a caller can change the registry")
	}
	if _, ok := r.Get("alpha-1_"); !ok {
		t.Error("Get does not find a tool")
	}
	res, err := r.Run(t.Context(), Call{Name: "zeta", Arguments: "x"})
	if err != nil || res.Text != "x" {
		t.Errorf("got %v, %v", res, err)
	}
	if _, err := r.Run(t.Context(), Call{Name: "alpha-1_"}); err != want {
		t.Errorf("got %v, want the tool's own error", err)
	}

	_, err = r.Run(t.Context(), Call{Name: "gamma"})
	if e, ok := errors.AsType[*Error](err); !ok || e.Code != CodeUnknown || !strings.Contains(e.Message, "zeta, alpha-1_, bad") {
		t.Errorf("unknown tool: %v", err)
	}
	_, err = r.Run(t.Context(), Call{Name: strings.Repeat("é", 1000)})
	if e, ok := errors.AsType[*Error](err); !ok || len(e.Message) > 500 {
		t.Errorf("a long name is repeated: %v", err)
	}

	_, err = r.Run(t.Context(), Call{Name: "bad"})
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Code != CodePanicked || strings.Contains(e.Message, "ouch") {
		t.Errorf("panic: %v", err)
	}
	if p, ok := errors.AsType[*PanicError](err); !ok || p.Value != "ouch" || !strings.Contains(string(p.Stack), "registry_test") {
		t.Errorf("the panic's value and stack are lost: %v", err)
	}

	empty, err := NewRegistry()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := empty.Run(t.Context(), Call{Name: "x"}); err == nil || !strings.Contains(err.Error(), "no tools") {
		t.Errorf("got %v", err)
	}
}
