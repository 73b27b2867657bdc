# Needs Go, Node 20 or newer and make; everything else is fetched or pinned here.
#
#   make run     build, then serve on http://127.0.0.1:7331 and print a login link
#   make test    every check there is; .ci/run calls it
#   make build   bin/meanwhile with the module and the page inside

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:

MODULE := wasm/bridge/module/client.wasm
ENGINE := wasm/quickjs/module/quickjs.wasm
HOST   := bin/meanwhile

# Packages where goroutines meet; the race detector runs on these, and on the
# whole host for a few questions. Under it the WebAssembly runtimes would take
# minutes to compile what their own tests show.
RACE := ./host/jsonrpc/... ./host/gateway/... ./host/session/... ./host/agent/... ./host/question/... ./host/outside \
        ./host/remotes ./host/auth ./host/httpserver ./host/notify ./host/tool/bash ./host/tool/askuser ./host/tool/subagent \
        ./shared/deadline/...
RACE_HOST := 'TestAsk|TestRestart|TestOutside(Hold|Withdraw)'

go_in = $(shell find $(1) -name '*.go' ! -name '*_test.go' 2>/dev/null)
MODULE_SRC := go.mod go.sum $(call go_in,shared wasm/client)
PAGE_SRC   := $(wildcard web/*.json web/*.ts web/*.html) $(shell find web/src web/public -type f 2>/dev/null)
HOST_SRC   := go.mod go.sum $(call go_in,shared wasm host web) $(shell find host -type f ! -name '*.go' ! -path '*/testdata/*' 2>/dev/null)

.PHONY: kill bench build run test clean static go race web e2e sim

build: $(HOST)

# Without inlining the module is a tenth smaller; the JSON reader, where its time
# goes, has it.
$(MODULE): $(MODULE_SRC)
	GOOS=wasip1 GOARCH=wasm go build -trimpath -gcflags=all=-l -gcflags=meanwhile/shared/event/value= -ldflags='-s -w' -buildmode=c-shared -o $@ ./wasm/client

# npm ci writes only below web/node_modules; the stamp is in there, so that removing it starts over.
web/node_modules/.stamp: web/package.json web/package-lock.json
	node -e 'if (parseInt(process.versions.node) < 20) { console.error("Node 20 or newer is needed, this is " + process.version); process.exit(1) }'
	cd web && npm ci --no-audit --no-fund && touch node_modules/.stamp

# The TypeScript client that the MCP door is tested with.
MCP_CLIENT := host/mcpserver/testdata/ts
$(MCP_CLIENT)/node_modules/.stamp: $(MCP_CLIENT)/package.json $(MCP_CLIENT)/package-lock.json
	cd $(MCP_CLIENT) && npm ci --no-audit --no-fund && touch node_modules/.stamp

# LangGraph, for the example that bridges its interrupts.
LANGGRAPH := docs/examples/langgraph
$(LANGGRAPH)/node_modules/.stamp: $(LANGGRAPH)/package.json $(LANGGRAPH)/package-lock.json
	cd $(LANGGRAPH) && npm ci --no-audit --no-fund && touch node_modules/.stamp

web/dist/index.html: web/node_modules/.stamp $(PAGE_SRC)
	cd web && npm run build && touch dist/.gitkeep dist/index.html

# The browser extension, for Chrome and for Firefox, in web/dist-extension.
EXTENSION := web/dist-extension/chrome/manifest.json
.PHONY: extension
extension: $(EXTENSION)

$(EXTENSION): web/node_modules/.stamp $(MODULE) $(PAGE_SRC)
	cd web && npm run build:extension

# The JavaScript engine of run_code comes from npm, under its own licence.
$(ENGINE): web/node_modules/.stamp
	cp web/node_modules/quickjs-wasi/LICENSE web/node_modules/quickjs-wasi/quickjs.wasm $(@D)
	touch $@

$(HOST): $(MODULE) $(ENGINE) web/dist/index.html $(HOST_SRC)
	go build -trimpath -o $@ ./host/cmd/meanwhile
	touch $@

# Without a key or a server of one's own, a scripted model shows what the program does.
run: build
	@key="$${DEEPSEEK_API_KEY:-}$${OPENAI_API_KEY:-}$${MEANWHILE_MODEL_BASE_URL:-}$${MEANWHILE_MODEL_SCRIPT:-}"; \
	exec $(HOST) serve --ask-mode timed $$([ -n "$$key" ] || echo --demo)

test: static go race web e2e
	@echo "all checks passed"

static: build
	@unformatted=$$(gofmt -l host shared wasm web/*.go); \
	if [ -n "$$unformatted" ]; then echo "gofmt would change: $$unformatted" >&2; exit 1; fi
	go vet ./...
	GOOS=wasip1 GOARCH=wasm go vet ./wasm/client ./shared/...
	go tool staticcheck ./...

go: build $(MCP_CLIENT)/node_modules/.stamp $(LANGGRAPH)/node_modules/.stamp
	for tool in curl jq python3; do .ci/need $$tool > /dev/null; done
	go test ./...

race: build
	.ci/need cc
	CGO_ENABLED=1 go test -race $(RACE)
	CGO_ENABLED=1 go test -race -run $(RACE_HOST) ./host/app

web: build
	cd web && npm run check

e2e: build extension
	chromium=$$(.ci/need chromium); \
	cd web && CHROMIUM="$$chromium" npm run e2e

# SEEDS runs of the core in virtual time, from FIRST on, one process for each
# processor. A failure prints its seed and how to see its story.
SEEDS ?= 2000
FIRST ?= 1
sim:
	go test -c -o bin/sim.test ./host/internal/sim
	@n=$$(nproc); pids=(); for ((i = 0; i < n; i++)); do \
		GOGC=400 bin/sim.test -test.run '^TestSim$$' -test.cpu 1 -test.timeout 0 -test.v \
			-seeds $$((($(SEEDS) + n - 1) / n)) -first $$(($(FIRST) + i)) -every $$n > bin/sim.$$i.log 2>&1 & pids+=($$!); \
	done; bad=0; for pid in $${pids[@]}; do wait $$pid || bad=1; done; \
	grep -hv '^=== \|--- PASS: TestSim/\|^ok\|^PASS' bin/sim.*.log; exit $$bad

# How often the real program is killed under load and what it promised looked for.
N ?= 200
kill: build
	go test ./host/internal/crash -run TestKill -v -kills $(N) -binary $(CURDIR)/$(HOST) -timeout 0

# Faults put into the program one at a time, each with the tests that must notice.
# ONLY is a pattern of names and files; none = all.
ONLY ?=
.PHONY: mutants
mutants: $(MODULE)
	go test -c -o bin/mutant.test ./host/internal/mutant
	cd host/internal/mutant && $(CURDIR)/bin/mutant.test -test.run '^TestMutants$$' -test.timeout 0 -mutants -only '$(ONLY)'

# How fast, beside what this machine does bare; see docs/proof.md.
bench: build
	chromium=$$(.ci/need chromium); \
	CHROMIUM="$$chromium" go test ./host/internal/bench -run TestBench -v -bench-all -chromium -timeout 0

clean:
	rm -rf bin web/node_modules $(MCP_CLIENT)/node_modules $(LANGGRAPH)/node_modules
	rm -rf web/dist-extension
	find web/dist -mindepth 1 ! -name .gitkeep -delete
	rm -f $(MODULE) $(ENGINE) $(dir $(ENGINE))LICENSE
