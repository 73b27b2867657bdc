package hook

import "slices"

// moment is what an event of an agent's loop means here.
type moment uint8

const (
	silent moment = iota
	asking
	working
	prompting
	starting
	stopping
)

// dialect is one agent's way of running hooks. The shapes are those that the
// agents document; each constructor in dialects says where.
type dialect struct {
	name   string
	events map[string]moment
	asks   []string // the names of its native question tool
	// foreign reports a payload of another program that runs this agent's hooks
	// and would not read this agent's shapes.
	foreign func(payload) bool
	// fills is set where an answered question goes back as the tool's input.
	fills bool
	// bytes is set where the limit of context counts bytes.
	bytes bool
	// blocksMax is how often in a row the agent lets itself be kept from ending.
	blocksMax int

	refuse  func(p payload, reason string) any
	context func(p payload, text string) any
	block   func(text string) any
}

// moment of a payload; silent for what this package has no part in.
func (d *dialect) moment(p payload) moment {
	m := d.events[p.Event]
	switch {
	case p.Helper, d.foreign != nil && d.foreign(p):
		return silent
	case m == asking && !slices.Contains(d.asks, p.Tool):
		return silent
	case m == stopping && p.Status != "" && p.Status != "completed":
		return silent // a person ended the turn: nothing may start it again
	}
	return m
}

// Agents lists the names that Run takes.
func Agents() []string {
	var names []string
	for _, d := range dialects() {
		names = append(names, d.name)
	}
	return names
}

func dialectOf(name string) (*dialect, bool) {
	all := dialects()
	i := slices.IndexFunc(all, func(d dialect) bool { return d.name == name })
	if i < 0 {
		return nil, false
	}
	return &all[i], true
}

type object = map[string]any

func dialects() []dialect {
	return []dialect{claude(), codex(), copilot(), gemini(), cursor()}
}

// specific is the envelope that most agents share. A name that is not that of
// the event makes some of them drop the whole reply.
func specific(event string, members object) object {
	members["hookEventName"] = event
	return object{"hookSpecificOutput": members}
}

func specificContext(p payload, text string) any {
	return specific(p.Event, object{"additionalContext": text})
}

func specificRefusal(p payload, reason string) any {
	return specific(p.Event, object{"permissionDecision": "deny", "permissionDecisionReason": reason})
}

func decisionBlock(reason string) any {
	return object{"decision": "block", "reason": reason}
}

// claude is as in code.claude.com/docs/en/hooks. After 8 blocks in a row the
// agent ends anyway, and what the ninth said is lost; hence the margin.
func claude() dialect {
	return dialect{
		name: "claude-code", asks: []string{"AskUserQuestion"}, fills: true, blocksMax: 6,
		events: map[string]moment{
			"PreToolUse": asking, "PostToolBatch": working, "PostToolUse": working,
			"UserPromptSubmit": prompting, "SessionStart": starting, "Stop": stopping,
		},
		// Cursor and Copilot also run the hooks of Claude Code's settings, and have
		// dialects of their own. Copilot stamps its payloads, and names no
		// transcript but where the turn ends, of which it reads this shape.
		foreign: func(p payload) bool { return p.Stamped || p.Cursor },
		refuse:  specificRefusal, context: specificContext, block: decisionBlock,
	}
}

// codex is as in developers.openai.com/codex/hooks and the schemas of
// openai/codex, codex-rs/hooks/schema/generated: closed, so a member too many
// drops the reply. Its Stop takes no hookSpecificOutput.
func codex() dialect {
	return dialect{
		name: "codex", asks: []string{"request_user_input"}, blocksMax: 6,
		events: map[string]moment{
			"PreToolUse": asking, "PostToolUse": working,
			"UserPromptSubmit": prompting, "SessionStart": starting, "Stop": stopping,
		},
		refuse: specificRefusal, context: specificContext, block: decisionBlock,
	}
}

// copilot is as in docs.github.com/en/copilot/reference/hooks-reference and
// code.visualstudio.com/docs/agents/reference/hooks-reference. The command line
// reads its members at the top, the editor in the envelope; both ignore what
// they do not know, so both are written. The older spelling is the command
// line's alone. Neither reads what a prompt hook writes. 10 KB of context is
// the limit, and 8 blocks in a row.
func copilot() dialect {
	both := func(p payload, members object) any {
		if p.Camel {
			return members
		}
		out := object{}
		inner := object{}
		for name, v := range members {
			out[name], inner[name] = v, v
		}
		out["hookSpecificOutput"] = specific(p.Event, inner)["hookSpecificOutput"]
		return out
	}
	return dialect{
		name: "copilot", asks: []string{"ask_user", "AskUserQuestion", "vscode_askQuestions"}, bytes: true, blocksMax: 6,
		events: map[string]moment{
			"PreToolUse": asking, "preToolUse": asking,
			"PostToolUse": working, "postToolUse": working,
			"SessionStart": starting, "sessionStart": starting,
			"Stop": stopping, "agentStop": stopping,
		},
		refuse: func(p payload, reason string) any {
			return both(p, object{"permissionDecision": "deny", "permissionDecisionReason": reason})
		},
		context: func(p payload, text string) any { return both(p, object{"additionalContext": text}) },
		block: func(text string) any {
			return both(payload{Event: "Stop"}, object{"decision": "block", "reason": text})
		},
	}
}

// gemini is as in google-gemini/gemini-cli, docs/hooks/reference.md. Whatever
// is on stdout must be JSON.
func gemini() dialect {
	deny := func(reason string) any { return object{"decision": "deny", "reason": reason} }
	return dialect{
		name: "gemini", asks: []string{"ask_user"}, blocksMax: 4,
		events: map[string]moment{
			"BeforeTool": asking, "AfterTool": working,
			"BeforeAgent": prompting, "SessionStart": starting, "AfterAgent": stopping,
		},
		refuse:  func(_ payload, reason string) any { return deny(reason) },
		context: specificContext, block: deny,
	}
}

// cursor is as in cursor.com/docs/agent/hooks. It has no question tool that a
// hook could answer, and no context with a prompt. It follows up 5 times.
func cursor() dialect {
	return dialect{
		name: "cursor", blocksMax: 4,
		events:  map[string]moment{"postToolUse": working, "sessionStart": starting, "stop": stopping},
		context: func(_ payload, text string) any { return object{"additional_context": text} },
		block:   func(text string) any { return object{"followup_message": text} },
	}
}
