package agenttest

import (
	"context"
	"log/slog"
	"testing"

	"meanwhile/host/agent"
	"meanwhile/host/agent/loop"
	"meanwhile/host/session"
	"meanwhile/host/session/sessiontest"
	"meanwhile/host/tool"
	"meanwhile/shared/event"
)

// Options of a World.
type Options struct {
	Backend *sessiontest.Mem // nil: a new one
	Store   *session.Store   // nil: one on Backend that fails the test with a write
	Model   *Model           // nil: none is configured
	Tools   func(a *agent.Agent) []tool.Tool
	Loop    loop.Options // Model and Tools are taken from above, if set there
	Agents  agent.Options
}

// World is a registry of agents over sessions in memory. Built-in sessions get
// a loop, external ones a passive agent.
type World struct {
	T      testing.TB
	Mem    *sessiontest.Mem
	Store  *session.Store
	Agents *agent.Registry
}

// New opens a world and closes it with the test.
func New(t testing.TB, o Options) *World {
	t.Helper()
	w := &World{T: t, Mem: o.Backend, Store: o.Store}
	if w.Mem == nil {
		w.Mem = sessiontest.NewMem()
	}
	if w.Store == nil {
		w.Store = sessiontest.OpenOn(t, w.Mem)
	}
	lo := o.Loop
	if o.Tools != nil {
		lo.Tools = o.Tools
	}
	if lo.Log == nil {
		lo.Log = slog.New(slog.DiscardHandler)
	}
	if lo.Model == nil {
		lo.Model = func(*agent.Agent) (loop.Model, error) {
			if o.Model == nil {
				return loop.Model{}, loop.ErrNoModel
			}
			return loop.Model{Provider: o.Model, Name: "one"}, nil
		}
	}
	ao := o.Agents
	if ao.Open == nil {
		ao.Open = w.Store.Open
	}
	if ao.Attach == nil {
		ao.Attach = func(a *agent.Agent) (agent.Driver, error) {
			if a.Log().Header().External() {
				return agent.NewPassive(a), nil
			}
			return loop.New(a, lo)
		}
	}
	w.Agents = agent.NewRegistry(ao)
	t.Cleanup(func() {
		if err := w.Agents.Close(context.Background()); err != nil {
			t.Errorf("close agents: %v", err)
		}
	})
	return w
}

// Create makes a session and its live agent.
func (w *World) Create(h event.Header) *agent.Agent {
	w.T.Helper()
	l := sessiontest.Create(w.T, w.Store, func(to *event.Header) { *to = h })
	a, err := w.Agents.Add(context.Background(), l, nil)
	if err != nil {
		w.T.Fatalf("add agent: %v", err)
	}
	return a
}

// Resume resumes the agent of a session.
func (w *World) Resume(id string) *agent.Agent {
	w.T.Helper()
	a, err := w.Agents.Resume(context.Background(), id)
	if err != nil {
		w.T.Fatalf("resume %s: %v", id, err)
	}
	return a
}

// Message is a person's message.
func Message(id string) event.Message {
	return event.Message{ID: id, Source: event.Source{Kind: event.SourceUser}, Text: "text of " + id}
}

// Send sends a person's message and fails the test if it is not taken.
func Send(t testing.TB, a *agent.Agent, id string) {
	t.Helper()
	if err := a.Send(context.Background(), Message(id)); err != nil {
		t.Errorf("send %s: %v", id, err)
	}
}

// Steer steers a person's message and fails the test if it is not taken.
func Steer(t testing.TB, a *agent.Agent, id string) {
	t.Helper()
	if err := a.Steer(context.Background(), Message(id)); err != nil {
		t.Errorf("steer %s: %v", id, err)
	}
}
