package install

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// serverName is the MCP server's name in every agent.
const serverName = "meanwhile"

// Scope is whose settings are edited.
type Scope string

// The scopes.
const (
	User    Scope = "user"    // for all the user's work
	Project Scope = "project" // for one directory, to be committed with it
)

// margin of a hook's own time limit over the question's window, and the limit
// of the hooks that only look.
const (
	windowMargin = 30 * time.Second
	lookWithin   = 10 * time.Second
)

// Place is where settings are looked for.
type Place struct {
	Home string // the user's home directory
	Dir  string // the project's directory
	// Env looks up a variable that moves an agent's settings; nil: none is set.
	Env func(string) string
	// Version is what an agent's program says when it is asked for its version,
	// or ""; nil: nobody asks. Only an agent whose versions differ here is asked.
	Version func(program string) string
}

func (p Place) env(name, def string) string {
	if p.Env != nil {
		if v := p.Env(name); v != "" {
			return v
		}
	}
	return def
}

// agent is one agent: its files and what is to stand in them.
type agent struct {
	name  string
	files func(p Place, s Scope) []target
	// notes tell the person what an installation does not do by itself.
	notes []string
}

// target is one file and its entries.
type target struct {
	path    string
	toml    bool
	hooks   *hookEntries
	servers []string // the path of the server's entry
	server  func(command string, args []string) any
	// first are members that a new file needs.
	first []pair
}

type pair struct {
	name string
	doc  json.RawMessage
}

// hookEntries are the hooks of one file: the list at hooks.EVENT has one entry
// of ours for each event.
type hookEntries struct {
	agent  string
	events []hookEvent
	// entry is the item for a command. limit is how long it may run.
	entry func(e hookEvent, command string, limit time.Duration) any
}

type hookEvent struct {
	name    string
	matcher string // the tool; "" for all, or where there is none
	asks    bool   // may wait for a person
}

// ordered writes members in the order that people expect.
type ordered []struct {
	name  string
	value any
}

func (o ordered) MarshalJSON() ([]byte, error) {
	var out strings.Builder
	out.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			out.WriteByte(',')
		}
		name, err := json.Marshal(m.name)
		if err != nil {
			return nil, err
		}
		doc, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		out.Write(name)
		out.WriteByte(':')
		out.Write(doc)
	}
	out.WriteByte('}')
	return []byte(out.String()), nil
}

func fields(pairs ...any) ordered {
	var o ordered
	for i := 0; i < len(pairs); i += 2 {
		o = append(o, struct {
			name  string
			value any
		}{pairs[i].(string), pairs[i+1]})
	}
	return o
}

// Agents lists the agents that there are settings for.
func Agents() []string {
	var names []string
	for _, a := range agents() {
		names = append(names, a.name)
	}
	return names
}

func agentOf(name string) (agent, error) {
	all := agents()
	if i := slices.IndexFunc(all, func(a agent) bool { return a.name == name }); i >= 0 {
		return all[i], nil
	}
	return agent{}, fmt.Errorf("%q is no agent that this program knows: write %s", name, strings.Join(Agents(), ", "))
}

func agents() []agent {
	return []agent{claude(), codex(), copilot(), gemini(), cursor(), opencode()}
}

// grouped is the entry of Claude Code and of those that took it over. unit is
// what the limit is counted in.
func grouped(unit time.Duration) func(hookEvent, string, time.Duration) any {
	return func(e hookEvent, command string, limit time.Duration) any {
		hooks := []any{fields("type", "command", "command", command, "timeout", int64(limit/unit))}
		if e.matcher == "" {
			return fields("hooks", hooks)
		}
		return fields("matcher", e.matcher, "hooks", hooks)
	}
}

func stdio(command string, args []string) any { return fields("command", command, "args", args) }

// pick is a path of the user's or of the project's.
func pick(p Place, s Scope, user, project string) string {
	if s == Project {
		return filepath.Join(p.Dir, project)
	}
	return user
}

// claude is as in code.claude.com/docs/en/hooks, /settings and /mcp.
func claude() agent {
	return agent{name: "claude-code", files: func(p Place, s Scope) []target {
		home := p.env("CLAUDE_CONFIG_DIR", filepath.Join(p.Home, ".claude"))
		state := filepath.Join(p.Home, ".claude.json")
		if p.env("CLAUDE_CONFIG_DIR", "") != "" {
			state = filepath.Join(home, ".claude.json")
		}
		return []target{
			{
				path: pick(p, s, filepath.Join(home, "settings.json"), ".claude/settings.json"),
				hooks: &hookEntries{agent: "claude-code", entry: grouped(time.Second), events: []hookEvent{
					{name: "PreToolUse", matcher: "AskUserQuestion", asks: true}, {name: "PostToolBatch"},
					{name: "UserPromptSubmit"}, {name: "SessionStart"}, {name: "Stop"},
				}},
			},
			{path: pick(p, s, state, ".mcp.json"), servers: []string{"mcpServers"}, server: stdio},
		}
	}}
}

// codex is as in developers.openai.com/codex/hooks and /codex/mcp.
func codex() agent {
	return agent{
		name: "codex",
		files: func(p Place, s Scope) []target {
			home := p.env("CODEX_HOME", filepath.Join(p.Home, ".codex"))
			return []target{
				{
					path: pick(p, s, filepath.Join(home, "hooks.json"), ".codex/hooks.json"),
					hooks: &hookEntries{agent: "codex", entry: grouped(time.Second), events: []hookEvent{
						{name: "PreToolUse", matcher: "request_user_input", asks: true}, {name: "PostToolUse"},
						{name: "UserPromptSubmit"}, {name: "SessionStart"}, {name: "Stop"},
					}},
				},
				{path: pick(p, s, filepath.Join(home, "config.toml"), ".codex/config.toml"), toml: true},
			}
		},
		notes: []string{"Codex runs new hooks only after you trusted them: open /hooks in it once"},
	}
}

// copilot is as in docs.github.com/en/copilot/reference/hooks-reference and
// /how-tos/copilot-cli/customize-copilot/add-mcp-servers. Names in capitals make
// the command line send what the editor sends, which reads the same files.
func copilot() agent {
	return agent{
		name: "copilot",
		files: func(p Place, s Scope) []target {
			home := p.env("COPILOT_HOME", filepath.Join(p.Home, ".copilot"))
			return []target{
				{
					path:  pick(p, s, filepath.Join(home, "hooks", "meanwhile.json"), ".github/hooks/meanwhile.json"),
					first: []pair{{"version", json.RawMessage("1")}},
					hooks: &hookEntries{agent: "copilot", events: []hookEvent{
						{name: "PreToolUse", matcher: "ask_user", asks: true}, {name: "PostToolUse"},
						{name: "SessionStart"}, {name: "Stop"},
					}, entry: func(e hookEvent, command string, limit time.Duration) any {
						o := fields("type", "command", "command", command, "timeoutSec", int64(limit/time.Second))
						if e.matcher != "" {
							o = append(o, fields("matcher", e.matcher)...)
						}
						return o
					}},
				},
				{
					path:    pick(p, s, filepath.Join(home, "mcp-config.json"), ".github/mcp.json"),
					servers: []string{"mcpServers"},
					server: func(command string, args []string) any {
						return fields("type", "local", "command", command, "args", args, "tools", []string{"*"})
					},
				},
			}
		},
		notes: []string{"Copilot drops what a prompt hook says: late answers come after a tool, at the end of a turn, or at a session's start"},
	}
}

// gemini is as in google-gemini/gemini-cli, docs/hooks/reference.md and
// docs/tools/mcp-server.md. Its limits are in milliseconds.
func gemini() agent {
	return agent{name: "gemini", files: func(p Place, s Scope) []target {
		return []target{{
			path:    pick(p, s, filepath.Join(p.Home, ".gemini", "settings.json"), ".gemini/settings.json"),
			servers: []string{"mcpServers"}, server: stdio,
			hooks: &hookEntries{agent: "gemini", entry: grouped(time.Millisecond), events: []hookEvent{
				{name: "BeforeTool", matcher: "ask_user", asks: true}, {name: "AfterTool"},
				{name: "BeforeAgent"}, {name: "SessionStart"}, {name: "AfterAgent"},
			}},
		}}
	}}
}

// cursor is as in cursor.com/docs/agent/hooks and cursor.com/docs/context/mcp.
func cursor() agent {
	return agent{
		name: "cursor",
		files: func(p Place, s Scope) []target {
			home := filepath.Join(p.Home, ".cursor")
			return []target{
				{
					path:  pick(p, s, filepath.Join(home, "hooks.json"), ".cursor/hooks.json"),
					first: []pair{{"version", json.RawMessage("1")}},
					hooks: &hookEntries{agent: "cursor", events: []hookEvent{{name: "sessionStart"}, {name: "postToolUse"}, {name: "stop"}},
						entry: func(_ hookEvent, command string, _ time.Duration) any { return fields("command", command) }},
				},
				{path: pick(p, s, filepath.Join(home, "mcp.json"), ".cursor/mcp.json"), servers: []string{"mcpServers"}, server: stdio},
			}
		},
		notes: []string{"Cursor has no question tool that a hook could answer: questions go through the MCP server"},
	}
}

// opencode is as in opencode.ai/docs/mcp-servers: its second version keeps
// servers under mcp.servers, the first under mcp itself.
func opencode() agent {
	return agent{
		name: "opencode",
		files: func(p Place, s Scope) []target {
			config := p.env("XDG_CONFIG_HOME", filepath.Join(p.Home, ".config"))
			path := pick(p, s, filepath.Join(config, "opencode", "opencode.json"), "opencode.json")
			if exists(path + "c") {
				path += "c"
			}
			servers, server := []string{"mcp", "servers"}, func(command string, args []string) any {
				return fields("type", "local", "command", append([]string{command}, args...))
			}
			if firstOpencode(p, path) {
				servers = servers[:1]
				server = func(command string, args []string) any {
					return fields("type", "local", "command", append([]string{command}, args...), "enabled", true)
				}
			}
			return []target{{path: path, servers: servers, server: server,
				first: []pair{{"$schema", json.RawMessage(`"https://opencode.ai/config.json"`)}}}}
		},
		notes: []string{"opencode runs no hooks of this kind: late answers come with the next call of one of the MCP tools"},
	}
}

// firstOpencode reports whether opencode's first version reads a file: by where
// the file has servers, and without any by the program that is installed.
func firstOpencode(p Place, path string) bool {
	src, err := readFile(path)
	if err != nil {
		return false
	}
	root, err := parse(src)
	if err != nil {
		return false // reported when the file is edited
	}
	if mcp := root.get("mcp"); mcp != nil && len(mcp.members) > 0 {
		return mcp.get("servers") == nil
	}
	if p.Version == nil {
		return false
	}
	version := strings.TrimPrefix(strings.TrimSpace(p.Version("opencode")), "v")
	return strings.HasPrefix(version, "0.") || strings.HasPrefix(version, "1.")
}
