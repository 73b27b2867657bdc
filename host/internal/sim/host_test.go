package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"meanwhile/host/agent"
	"meanwhile/host/agent/loop"
	"meanwhile/host/auth"
	"meanwhile/host/gateway"
	"meanwhile/host/jsonrpc"
	"meanwhile/host/outside"
	"meanwhile/host/question"
	"meanwhile/host/question/questiontest"
	"meanwhile/host/remotes"
	"meanwhile/host/session"
	"meanwhile/host/tool"
	"meanwhile/host/tool/askuser"
	"meanwhile/shared/event"
)

// legacyDir marks a session whose agent has the ask tool without a timeout.
const legacyDir = "/legacy"

// host is one life of the host's process: everything the composition root
// makes, but for its listeners.
type host struct {
	w       *World
	disk    media
	store   *session.Store
	agents  *agent.Registry
	quest   *question.Service
	gateway *gateway.Gateway
	outside *outside.Service
	accepts sync.WaitGroup

	mu    sync.Mutex
	lines map[*line]bool
	dead  bool // the process ended: nothing it does matters any more
	fatal chan struct{}
}

// noTokens is a token store that is empty: principals come with the connection.
type noTokens struct{}

func (noTokens) Put(string, []byte) error              { return nil }
func (noTokens) Delete(string) error                   { return nil }
func (noTokens) Each(func(string, []byte) error) error { return nil }

// boot starts the host on a disk, as the composition root does.
func boot(w *World, d media) (*host, error) {
	h := &host{w: w, disk: d, lines: map[*line]bool{}, fatal: make(chan struct{})}
	silent := slog.New(slog.DiscardHandler)
	var err error
	h.store, err = session.Open(d, session.Options{Log: silent, Fatal: func(error) {
		h.kill()
		close(h.fatal)
	}})
	if err != nil {
		return nil, err
	}
	if _, err := h.store.RepairAll(context.Background()); err != nil {
		if w.fault == None && !errors.Is(err, session.ErrUnknown) {
			return nil, fmt.Errorf("repair: %w", err)
		}
		return h, err // the disk failed meanwhile
	}
	h.gateway = gateway.New(gateway.Config{
		Version: "sim", Module: gateway.Module{Path: "/client.wasm", SHA256: "sim"},
		Wire: remotes.Wire, SettleScope: auth.Scopes(auth.Answer).String(),
		NewID: w.newID, Conn: w.conn(),
	})
	idleMax := -1
	if w.idle > 0 {
		idleMax = 1
	}
	h.agents = agent.NewRegistry(agent.Options{
		Open: h.store.Open, IdleMax: idleMax, IdleAfter: w.idle,
		Attach: func(a *agent.Agent) (agent.Driver, error) {
			if a.Log().Header().External() {
				return agent.NewPassive(a), nil
			}
			return loop.New(a, loop.Options{
				Model: func(*agent.Agent) (loop.Model, error) {
					return loop.Model{Provider: w.modelOf(a.ID()), Name: "sim"}, nil
				},
				Tools: h.tools, Log: silent, Grace: time.Second,
			})
		},
		Changed: func(a *agent.Agent) {
			if a.Passive() != nil {
				h.outside.Wake(a.ID())
			}
		},
	})
	h.quest = question.New(question.Options{
		Emit: w.emitter(remotes.Emit(h.gateway)), Validator: questiontest.Native{}, Agents: h.agents,
		MaxHold: w.maxHold, Clock: w.hostClock,
	})
	head, err := agent.Header("outside", "outside", "", []tool.Spec{askuser.New(h.quest, nil, askuser.Options{Mode: askuser.Timed}).Spec()})
	if err != nil {
		return nil, err
	}
	h.outside = outside.New(outside.Options{Questions: h.quest, Agents: h.agents, Sessions: h.store, Header: head})
	tokens, err := auth.OpenTokens(noTokens{}, nil)
	if err != nil {
		return nil, err
	}
	remotes.Bind(h.gateway, remotes.Options{
		Sessions: h.store, Agents: h.agents, Questions: h.quest, Outside: h.outside,
		Tokens: tokens, Codes: auth.NewCodes(tokens), LoginURL: func(string) string { return "" },
	})
	return h, nil
}

func (h *host) tools(a *agent.Agent) []tool.Tool {
	mode := askuser.Timed
	if a.Log().Header().CWD == legacyDir {
		mode = askuser.Legacy
	}
	tools := []tool.Tool{askuser.New(h.quest, a, askuser.Options{Mode: mode, Default: 20 * time.Second}), work{}}
	if mode == askuser.Timed {
		tools = append(tools, askuser.NewWithdraw(h.quest, a))
	}
	return tools
}

// resumeQueued starts the agents whose messages waited.
func (h *host) resumeQueued() {
	for _, row := range h.store.List() {
		if len(row.Queued) > 0 || row.Partial {
			// An error is the process ending, which is seen elsewhere.
			_, _ = h.agents.Resume(context.Background(), row.ID)
		}
	}
}

// accept takes a connection as the holder of these scopes.
func (h *host) accept(l *line, p gateway.Principal) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dead {
		return false
	}
	h.lines[l] = true
	h.accepts.Go(func() {
		_ = h.gateway.Accept(context.Background(), hostEnd{l}, p) // why it ended is the gateway's tests' business
		h.mu.Lock()
		delete(h.lines, l)
		h.mu.Unlock()
	})
	return true
}

// post makes one call without a connection.
func (h *host) post(p gateway.Principal, method string, params any) (json.RawMessage, error) {
	raw, err := jsonrpc.Encode(params)
	if err != nil {
		return nil, err
	}
	_, out, written := h.gateway.Post(context.Background(), p, jsonrpc.EncodeCall(jsonrpc.IntID(1), method, raw))
	h.mu.Lock()
	dead := h.dead
	h.mu.Unlock()
	if dead {
		return nil, errCut // the process ended before the response was out
	}
	written()
	m, err := jsonrpc.ParseMessage(out)
	if err != nil {
		return nil, err
	}
	if m.Error != nil {
		return nil, m.Error
	}
	return m.Result, nil
}

// kill is the end of the process: nothing it says or writes from now on
// reaches anybody.
func (h *host) kill() {
	h.mu.Lock()
	h.dead = true
	lines := make([]*line, 0, len(h.lines))
	for l := range h.lines {
		lines = append(lines, l)
	}
	h.mu.Unlock()
	for _, l := range lines {
		l.cut()
	}
}

// close takes the host apart, as the composition root does. After kill that
// only sweeps up goroutines.
func (h *host) close() {
	if h.quest != nil {
		h.quest.Close()
		h.gateway.Close()
		h.outside.Close()
		_ = h.agents.Close(context.Background()) // no bound: it cannot fail
		h.accepts.Wait()
	}
	_ = h.store.Close() // a dead disk has nothing to say
}

// events are all events of a session that are on disk.
func (h *host) events(id string) ([]event.Event, error) {
	var out []event.Event
	for {
		raws, err := h.disk.Events(id, int64(len(out)), 1<<20)
		if err != nil {
			return nil, err
		}
		if len(raws) == 0 {
			return out, nil
		}
		for _, raw := range raws {
			e, err := event.ParseEvent(raw)
			if err != nil {
				return nil, err
			}
			if e.Seq != int64(len(out)) {
				return nil, fmt.Errorf("session %s: event has seq %d where %d is next", id, e.Seq, len(out))
			}
			out = append(out, e)
		}
	}
}
