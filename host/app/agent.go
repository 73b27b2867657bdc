package app

import (
	"context"
	"log/slog"
	"slices"

	"meanwhile/host/agent"
	"meanwhile/host/agent/loop"
	"meanwhile/host/config"
	"meanwhile/host/llm"
	"meanwhile/host/llm/chat"
	"meanwhile/host/llm/deepseek"
	"meanwhile/host/llm/openai"
	"meanwhile/host/llm/replay"
	"meanwhile/host/session"
	"meanwhile/host/tool"
	"meanwhile/host/tool/askuser"
	"meanwhile/host/tool/bash"
	"meanwhile/host/tool/file"
	"meanwhile/host/tool/runcode"
	"meanwhile/host/tool/subagent"
	"meanwhile/host/tool/webfetch"
	"meanwhile/shared/event"
)

// system is what every built-in agent is told first.
const system = `You are an agent that works for one person, on this machine, through the tools you are given.
Work in small steps and say in a sentence or two what you did when you are done.
Ask with ask_user_question when a decision is the person's to make and the work depends on it: put related questions into one call, offer options where there are some, and put the one you recommend first.
A question that comes back as pending is not answered. It is neither a skip nor permission: leave what depends on it undone, go on with what does not, and finish your turn. Do not ask it again. The answer comes later, as a user message that names the callId of your question; then act on it, and say if it changes what you did meanwhile.
What cannot be undone, such as deleting, publishing or paying, needs an answer that was really given: ask for it without a timeout.`

// newModel returns the model of built-in agents. Without one, each request for
// it is an error that says what to set.
func newModel(cfg config.Config, log *slog.Logger) (func(*agent.Agent) (loop.Model, error), error) {
	provider, err := newProvider(cfg, log)
	if err != nil {
		return nil, err
	}
	if provider == nil {
		return func(*agent.Agent) (loop.Model, error) { return loop.Model{}, loop.ErrNoModel }, nil
	}
	model := loop.Model{Provider: provider, Name: cfg.Model.Name, System: system, MaxTokens: cfg.Model.MaxTokens}
	return func(*agent.Agent) (loop.Model, error) { return model, nil }, nil
}

func newProvider(cfg config.Config, log *slog.Logger) (llm.Provider, error) {
	m := cfg.Model
	c := chat.Config{Name: m.Provider, BaseURL: m.BaseURL, APIKey: m.APIKey.Reveal(), Model: m.Name, Log: log}
	switch {
	case m.Provider == "deepseek":
		return deepseek.New(c)
	case m.Provider == "openai":
		return openai.New(c)
	case m.Script != "":
		return replay.Load(m.Script)
	case cfg.Demo:
		return replay.Demo()
	}
	return nil, nil
}

// driver makes what moves a session on: the loop, or a recorder for an agent
// that lives elsewhere.
func (a *App) driver(ag *agent.Agent, model func(*agent.Agent) (loop.Model, error)) (agent.Driver, error) {
	if fault := ag.Log().Damage(); fault != nil {
		return nil, fault
	}
	if ag.Log().Header().External() {
		return agent.NewPassive(ag), nil
	}
	shell, err := a.shell(ag)
	if err != nil {
		// The agent can still talk and ask, and its late answers arrive.
		a.log.Warn("an agent has no shell", "session", ag.ID(), "error", err)
	}
	driver, err := loop.New(ag, loop.Options{
		Model: model,
		Tools: func(ag *agent.Agent) []tool.Tool { return a.tools(ag, shell) },
		Log:   a.log,
	})
	if err != nil {
		return nil, err
	}
	return builtin{Driver: driver, shell: shell}, nil
}

// builtin is the loop with what its tools keep running.
type builtin struct {
	*loop.Driver
	shell *bash.Shell // nil when there is none
}

// Stop also ends the commands that run in the background.
func (b builtin) Stop(ctx context.Context) error {
	err := b.Driver.Stop(ctx)
	if b.shell != nil {
		b.shell.Close()
	}
	return err
}

// dir is where an agent works, empty for the host's directory.
func (a *App) dir(ag *agent.Agent) string {
	if dir := ag.Log().Header().CWD; dir != "" {
		return dir
	}
	return a.cfg.Bash.Dir
}

// shell is the agent's own, in its session's directory.
func (a *App) shell(ag *agent.Agent) (*bash.Shell, error) {
	return bash.New(bash.Config{Dir: a.dir(ag), Timeout: a.cfg.Bash.Timeout, TimeoutMax: a.cfg.Bash.TimeoutMax})
}

// tools are what one built-in agent can do.
func (a *App) tools(ag *agent.Agent, shell *bash.Shell) []tool.Tool {
	mode := askuser.Legacy
	if a.cfg.Ask.Mode == config.Timed {
		mode = askuser.Timed
	}
	tools := []tool.Tool{
		askuser.New(a.questions, ag, askuser.Options{Mode: mode, Default: a.cfg.Ask.Timeout}),
		askuser.NewPlan(a.questions, ag),
	}
	if shell != nil {
		tools = append(tools, shell.Tools()...)
	}
	if files, err := file.New(a.dir(ag)); err != nil {
		a.log.Warn("an agent has no workspace", "session", ag.ID(), "error", err)
	} else {
		tools = append(tools, files.Tools()...)
	}
	tools = append(tools, webfetch.New(webfetch.Config{Timeout: a.cfg.WebFetch.Timeout, TimeoutMax: a.cfg.WebFetch.TimeoutMax}), subagent.New(a.agents, a.sessions, ag))
	if a.engine != nil {
		programs, err := runcode.New(a.engine, ag, slices.Clone(tools), runcode.Config{Timeout: a.cfg.RunCode.Timeout, TimeoutMax: a.cfg.RunCode.TimeoutMax, Log: a.log})
		if err != nil {
			a.log.Warn("an agent cannot run programs", "session", ag.ID(), "error", err)
		} else {
			tools = append(tools, programs)
		}
	}
	// A withdrawal needs a call of its own in the log, so no program makes it.
	if mode == askuser.Timed {
		tools = append(tools, askuser.NewWithdraw(a.questions, ag))
	}
	return tools
}

// outsideHeader is the request header of agents from other programs: they are
// offered the timed tool, whatever this host's own agents have.
func outsideHeader(q askuser.Asker) (event.RequestHeader, error) {
	spec := askuser.New(q, nil, askuser.Options{Mode: askuser.Timed}).Spec()
	return agent.Header("outside", "outside", "", []tool.Spec{spec})
}

// note puts the agent's state into its row in the list, and tells an agent that
// holds for a reply that one may be there.
func (a *App) note(ag *agent.Agent) {
	a.sessions.SetNote(ag.ID(), noteOf(ag.Status()))
	if ag.Passive() != nil {
		a.outside.Wake(ag.ID())
	}
}

// noteOf is empty while there is nothing to say beside the row's status.
func noteOf(s agent.Status) string {
	switch s.State {
	case agent.Queued, agent.Blocked:
		return string(s.State) + ": " + s.Reason
	}
	return ""
}

// resumeQueued starts the agents whose messages were waiting when the host
// stopped, and says of the others why theirs wait on.
func (a *App) resumeQueued(ctx context.Context) error {
	for _, row := range a.sessions.List() {
		if len(row.Queued) == 0 && !row.Partial || row.Status == session.StatusDamaged {
			continue
		}
		// Waking an agent is what makes it look at its queue; one that stays as
		// it is says so in its row.
		ag, err := a.agents.Resume(ctx, row.ID)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			// One session must not keep the others from starting.
			a.log.Warn("a session with queued messages did not resume", "session", row.ID, "error", err)
			continue
		}
		a.note(ag)
	}
	return nil
}
