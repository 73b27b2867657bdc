package archtest

import (
	"slices"
	"strings"
	"testing"
)

// Imports that may not be, tests excepted.
var forbidden = []struct {
	from   []string // packages and what is below them
	to     []string
	except []string // importers that may
	why    string
}{
	{
		from: []string{"shared"}, to: []string{"host", "wasm", "web"},
		why: "shared is what both sides agree on; it runs in the browser too",
	},
	{
		from: []string{"wasm/client"}, to: []string{"host", "wasm/bridge", "web"},
		why: "the client module is a pure machine and ships to the browser",
	},
	{
		from: []string{"wasm/bridge"}, to: []string{"host", "wasm/client"}, except: []string{"wasm/bridge/paritytest"},
		why: "the host runs the module only as bytes, or host and page could check by different code",
	},
	{
		from: []string{"wasm/quickjs"}, to: []string{"host", "wasm/client", "wasm/bridge"},
		why: "the engine runs scripts and knows nothing of who wrote them",
	},
	{
		from: []string{"web"}, to: []string{"host", "wasm", "shared"},
		why: "web only embeds the built page",
	},
	{
		from: []string{"host/gateway", "host/jsonrpc"},
		to:   []string{"host/session", "host/agent", "host/question", "host/tool", "host/outside", "host/remotes", "host/llm", "shared/projection", "shared/event", "wasm"},
		why:  "the transport carries events by name; it knows no business",
	},
	{
		from: []string{"host/jsonrpc"}, to: []string{"host/gateway", "host/auth"},
		why: "the peer is used by clients too",
	},
	{
		from: []string{"host/agent"}, to: []string{"host/question", "host/tool/askuser", "host/outside", "host/gateway"},
		why: "agents and their loop do not know that questions exist",
	},
	{
		from: []string{"host/question"}, to: []string{"host/gateway", "host/remotes", "wasm"},
		why: "the service declares the few methods it needs; remotes and app bind them",
	},
	{
		from: []string{"host/session"}, to: []string{"host/agent", "host/question", "host/llm", "host/tool"},
		why: "the log is below everything that writes to it",
	},
	{
		from: []string{"host"}, to: []string{"wasm/client"},
		why: "the host runs the module only as bytes",
	},
	{
		from: []string{"host", "shared", "wasm", "web"}, to: []string{"host/internal/hosttest", "host/session/sessiontest", "host/llm/llmtest", "host/agent/agenttest", "host/question/questiontest", "host/internal/sim"},
		except: []string{"host/internal", "host/session/sessiontest", "host/llm/llmtest", "host/agent/agenttest", "host/question/questiontest"},
		why:    "test helpers stay out of the program",
	},
}

func TestForbiddenImports(t *testing.T) {
	for _, p := range packages(t) {
		for _, rule := range forbidden {
			if !withinAny(p.path(), rule.from) || withinAny(p.path(), rule.except) {
				continue
			}
			for _, imp := range p.Imports {
				if to, ok := local(imp); ok && withinAny(to, rule.to) {
					t.Errorf("%s imports %s: %s", p.path(), to, rule.why)
				}
			}
		}
	}
}

// Host packages from low to high. A package imports its own layer and those
// below; the entry with the longest matching path counts.
var layers = [][]string{
	{"host/internal/id"},
	{"host/jsonrpc", "host/llm", "host/tool", "host/auth", "host/config", "host/install", "host/qr"},
	{"host/session", "host/gateway"},
	{"host/session/logstore", "host/session/sessiontest", "host/gateway/wsconn", "host/llm/chat", "host/llm/deepseek", "host/llm/openai", "host/llm/replay", "host/llm/llmtest", "host/agent"},
	{"host/question", "host/question/questiontest", "host/tool/bash", "host/tool/webfetch", "host/agent/loop", "host/agent/agenttest", "host/httpserver"},
	{"host/metrics", "host/tool/askuser", "host/tool/runcode", "host/tool/subagent", "host/outside", "host/notify"},
	{"host/mcpserver", "host/httpapi", "host/hook", "host/remotes"},
	{"host/app"},
	{"host/cli", "host/internal/hosttest", "host/internal/crash", "host/internal/mutant", "host/internal/bench", "host/internal/security", "host/internal/sim"},
	{"host/cmd"},
	{"host/internal/archtest"},
}

func layerOf(path string) int {
	found, length := -1, 0
	for i, layer := range layers {
		for _, root := range layer {
			if within(path, root) && len(root) > length {
				found, length = i, len(root)
			}
		}
	}
	return found
}

func TestHostLayers(t *testing.T) {
	for _, p := range packages(t) {
		if !within(p.path(), "host") {
			continue
		}
		own := layerOf(p.path())
		if own < 0 {
			t.Errorf("%s has no layer: give it one in this table", p.path())
			continue
		}
		for _, imp := range p.Imports {
			to, ok := local(imp)
			if !ok || !within(to, "host") {
				continue
			}
			if their := layerOf(to); their > own {
				t.Errorf("%s (layer %d) imports %s (layer %d): imports run downwards", p.path(), own, to, their)
			}
		}
	}
}

type home struct {
	path string
	in   []string
	why  string
}

// Third-party modules and the packages that may use them in the program. Tests
// may use what they need.
var homes = []home{
	{"github.com/syndtr/goleveldb", []string{"host/session/logstore"}, "the store can be exchanged behind session.Backend"},
	{"github.com/gorilla/websocket", []string{"host/gateway/wsconn"}, "everything above speaks jsonrpc.Transport"},
	{"github.com/tetratelabs/wazero", []string{"wasm/bridge", "wasm/quickjs"}, "one package for each thing that runs on it: the client module, and the scripts of run_code"},
	{"github.com/spf13/cobra", []string{"host/cli"}, "the rest of the program is no command line"},
	{"github.com/spf13/pflag", []string{"host/cli"}, "as cobra"},
	{"github.com/pelletier/go-toml", []string{"host/config"}, "one place reads settings"},
	{"github.com/google/uuid", []string{"host/internal/id"}, "identifiers are drawn in one place, at random"},
	{"github.com/go-json-experiment/json", []string{"shared/event/value"}, "one strict JSON reader for host and module"},
	{"github.com/google/jsonschema-go", []string{"host/mcpserver"}, "as the MCP SDK"},
	{"github.com/modelcontextprotocol/go-sdk", []string{"host/mcpserver"}, "MCP is one door among several"},
	{"github.com/andybalholm/brotli", []string{"host/httpserver"}, "compression is a matter of serving"},
	{"golang.org/x/sys", []string{"host/tool/bash", "host/app", "host/question"}, "system calls: killing process trees, locking the data directory, the clocks"},
	{"codeberg.org/readeck/go-readability", []string{"host/tool/webfetch"}, "what a page says"},
	{"github.com/JohannesKaufmann", []string{"host/tool/webfetch"}, "a page as markdown"},
	{"golang.org/x/text", []string{"host/tool/webfetch"}, "a page's encoding"},
	{"golang.org/x/net", []string{"host/tool/webfetch"}, "reading pages"},
	{"github.com/prometheus/client_golang", []string{"host/metrics"}, "how numbers are read can change in one place"},
	{"rsc.io/qr", []string{"host/qr"}, "the drawing of a login link"},
	{"github.com/google/go-cmp", nil, "for tests"},
	{"pgregory.net/rapid", []string{"host/internal/sim"}, "for tests"},
	{"go.uber.org/goleak", nil, "for tests"},
	{"github.com/rogpeppe/go-internal", nil, "for tests"},
}

func TestThirdPartyHomes(t *testing.T) {
	for _, p := range packages(t) {
		for _, imp := range p.Imports {
			if _, ok := local(imp); ok || isStandard(imp) || imp == module {
				continue
			}
			i := slices.IndexFunc(homes, func(h home) bool { return within(imp, h.path) })
			switch {
			case i < 0:
				t.Errorf("%s imports %s, which has no home: give it one in this table, with a reason", p.path(), imp)
			case !slices.Contains(homes[i].in, p.path()):
				t.Errorf("%s imports %s, which lives in %s: %s", p.path(), imp, strings.Join(homes[i].in, ", "), homes[i].why)
			}
		}
	}
}

// Standard packages that pure code goes without.
func TestSharedIsPure(t *testing.T) {
	for _, p := range packages(t) {
		if !within(p.path(), "shared") && !within(p.path(), "wasm/client") {
			continue
		}
		for _, imp := range p.Imports {
			switch {
			case slices.Contains([]string{"os", "net", "io/fs", "math/rand", "math/rand/v2", "crypto/rand", "os/exec", "log", "log/slog"}, imp) || strings.HasPrefix(imp, "net/"):
				t.Errorf("%s imports %s: what both sides share does no I/O and draws no chance", p.path(), imp)
			case (imp == "time" || imp == "sync" || imp == "context" || imp == "sync/atomic") && p.path() != "shared/deadline":
				t.Errorf("%s imports %s: time is an argument and machines have no locks (shared/deadline alone has timers)", p.path(), imp)
			}
		}
	}
}

// The module is what every page loads first: each of these packages brings
// hundreds of kilobytes, or a clock the page could not control.
func TestModuleStaysSmall(t *testing.T) {
	out, err := goCommand([]string{"GOOS=wasip1", "GOARCH=wasm"}, "list", "-deps", "./wasm/client")
	if err != nil {
		t.Fatal(err)
	}
	deps := strings.Fields(string(out))
	if !slices.Contains(deps, module+"/shared/projection") {
		t.Fatalf("the module does not contain shared/projection: is this the module? %d packages", len(deps))
	}
	for _, heavy := range []string{"fmt", "reflect", "os", "encoding/json", "time", "log", "net", "context", "regexp", "text/template"} {
		if slices.Contains(deps, heavy) {
			t.Errorf("wasm/client pulls in %s", heavy)
		}
	}
}
