package runcode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"meanwhile/host/agent"
	"meanwhile/host/tool"
	"meanwhile/shared/deadline"
	"meanwhile/wasm/quickjs"
)

// Name is the tool's name.
const Name = "run_code"

// Codes of the errors the model sees.
const (
	CodeTimeout   = "RUN_CODE_TIMEOUT"
	CodeAborted   = "RUN_CODE_ABORTED"
	CodeArguments = "RUN_CODE_ARGUMENTS"
	CodeFailed    = "RUN_CODE_FAILED"
	CodeMemory    = "RUN_CODE_MEMORY"
	CodeStuck     = "RUN_CODE_STUCK"
	CodeTooMany   = "RUN_CODE_TOO_MANY"
)

// Limits.
const (
	codeMax        = 200_000 // bytes
	callsMax       = 200
	parallelMax    = 16
	argumentsMax   = 256 << 10
	outputMax      = 50_000
	resultMax      = 100_000
	defaultTimeout = 30 * time.Second
	defaultMax     = 5 * time.Minute
)

// Config of the tool. Zero values mean what the comments say.
type Config struct {
	Timeout    time.Duration // running time of a program that asks for none; 0 is 30 seconds
	TimeoutMax time.Duration // 0 is 5 minutes
	Log        *slog.Logger  // nil is slog.Default
}

// Tool is run_code for one agent.
type Tool struct {
	engine *quickjs.Engine
	agent  *agent.Agent
	tools  *tool.Registry
	cfg    Config
}

// New makes the tool for one agent. tools are what its programs can call.
func New(engine *quickjs.Engine, a *agent.Agent, tools []tool.Tool, cfg Config) (*Tool, error) {
	registry, err := tool.NewRegistry(tools...)
	if err != nil {
		return nil, fmt.Errorf("run_code: %w", err)
	}
	if _, ok := registry.Get(Name); ok {
		return nil, errors.New("run_code: a program cannot run programs: leave run_code out of its tools")
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.TimeoutMax <= 0 {
		cfg.TimeoutMax = defaultMax
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	return &Tool{engine: engine, agent: a, tools: registry, cfg: cfg}, nil
}

// Spec is what the model is told.
func (t *Tool) Spec() tool.Spec {
	names := t.names()
	if len(names) == 0 {
		names = []string{"none"}
	}
	return tool.Spec{
		Name: Name,
		Description: "Runs a JavaScript program and returns what it returns, after what it printed with console.log. " +
			"Use it to call tools many times, at the same time or depending on each other, and to keep only what matters of what they return. " +
			"The code is the body of an async function: use await and return. " +
			"tools.NAME(arguments) calls a tool with the same arguments as outside and gives a promise of its result text (JSON.parse it where it is JSON); a tool's error is thrown, with a code. " +
			"Promise.all runs calls side by side. Await every call: those still running when the program ends are cancelled. " +
			"Tools: " + strings.Join(names, ", ") + ". " +
			"There are no modules, timers, files or network but through tools. " +
			fmt.Sprintf("A program that computes for longer than its timeout (%d s unless given, at most %d; waiting for tools does not count) is ended.", int(t.cfg.Timeout.Seconds()), int(t.cfg.TimeoutMax.Seconds())),
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"code":{"type":"string","description":"the body of an async function"},` +
			`"timeout":{"type":"integer","minimum":1,"description":"seconds of computing"}},` +
			`"required":["code"],"additionalProperties":false}`),
	}
}

func (t *Tool) names() []string {
	var names []string
	for _, s := range t.tools.Specs() {
		names = append(names, s.Name)
	}
	return names
}

type arguments struct {
	Code    string `json:"code"`
	Timeout *int64 `json:"timeout"`
}

// Run runs a program to its one outcome.
func (t *Tool) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	args, d, err := t.parse(c.Arguments)
	if err != nil {
		return tool.Result{}, err
	}
	if ctx.Err() != nil {
		return tool.Result{}, aborted(ctx)
	}
	p := newProgram(t, c, d)
	return p.run(ctx, args.Code)
}

func (t *Tool) parse(raw string) (args arguments, d time.Duration, err error) {
	dec := json.NewDecoder(strings.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&args); err != nil {
		return args, 0, refuse(CodeArguments, `arguments: %v: send {"code": "…", "timeout": seconds}`, err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return args, 0, refuse(CodeArguments, "there is text after the arguments; send one JSON object")
	}
	switch {
	case strings.TrimSpace(args.Code) == "":
		return args, 0, refuse(CodeArguments, "code is empty; send the body of an async function")
	case len(args.Code) > codeMax:
		return args, 0, refuse(CodeArguments, "code has %d bytes, at most %d; split it, or read data from a file", len(args.Code), codeMax)
	}
	var wish *time.Duration
	if args.Timeout != nil {
		// Cut before multiplying: a year too many must not wrap around.
		most := int64(t.cfg.TimeoutMax/time.Second) + 1
		w := time.Duration(min(max(*args.Timeout, -1), most)) * time.Second
		wish = &w
	}
	if d, err = deadline.Clamp(wish, t.cfg.Timeout, t.cfg.TimeoutMax, "timeout"); err != nil {
		return args, 0, refuse(CodeArguments, "%v", err)
	}
	return args, d, nil
}

// aborted is the end from above. A stopping agent gets no result at all.
func aborted(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), agent.ErrStopping) {
		return context.Cause(ctx)
	}
	return refuse(CodeAborted, "the program was ended because the turn was cancelled; what its calls did until then stands")
}

func refuse(code, format string, args ...any) *tool.Error {
	return &tool.Error{Name: "RunCodeError", Code: code, Message: fmt.Sprintf(format, args...)}
}
