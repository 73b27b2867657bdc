package bash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"meanwhile/host/tool"
	"meanwhile/shared/deadline"
)

// Codes of the errors the model sees.
const (
	CodeTimeout   = "BASH_TIMEOUT"
	CodeAborted   = "BASH_ABORTED"
	CodeArguments = "BASH_ARGUMENTS"
	CodeStart     = "BASH_START"
	CodeTooMany   = "BASH_TOO_MANY"
	CodeUnknownID = "BASH_UNKNOWN_ID"
	CodeClosed    = "BASH_CLOSED"
)

// Limits; Config may lower or raise the ones it names.
const (
	maxCommand     = 100_000
	MaxRunning     = 16
	maxEnded       = 64
	defaultOutput  = 30_000
	defaultGrace   = 2 * time.Second
	defaultTimeout = 2 * time.Minute
	defaultMax     = 30 * time.Minute
)

// Config is one agent's shell. Zero values mean what the comments say.
type Config struct {
	Dir        string        // working directory; empty is the host's
	Timeout    time.Duration // of a foreground command that asks for none; 0 is 2 minutes
	TimeoutMax time.Duration // 0 is 30 minutes
	Grace      time.Duration // between TERM and KILL; 0 is 2 seconds
	MaxOutput  int           // bytes of output kept; 0 is 30,000
	Shell      string        // empty looks for bash, then sh
	Env        []string      // base environment; nil is the host's without its secrets
}

// Shell owns the commands of one agent.
type Shell struct {
	cfg Config
	env []string

	closing context.Context // ends with Close, and foreground commands with it
	close   context.CancelFunc

	mu         sync.Mutex
	closed     bool
	jobs       []*job // in the order they were started
	foreground sync.WaitGroup
}

// New returns the shell of one agent. Close it with the agent.
func New(cfg Config) (*Shell, error) {
	if cfg.Shell == "" {
		var err error
		if cfg.Shell, err = findShell(); err != nil {
			return nil, err
		}
	}
	set := func(d *time.Duration, def time.Duration) {
		if *d <= 0 {
			*d = def
		}
	}
	set(&cfg.Timeout, defaultTimeout)
	set(&cfg.TimeoutMax, defaultMax)
	set(&cfg.Grace, defaultGrace)
	if cfg.MaxOutput <= 0 {
		cfg.MaxOutput = defaultOutput
	}
	if cfg.Env == nil {
		cfg.Env = os.Environ()
	}
	s := &Shell{cfg: cfg, env: withoutSecrets(cfg.Env)}
	s.closing, s.close = context.WithCancel(context.Background())
	return s, nil
}

// withoutSecrets leaves out what belongs to the host and not to a command the
// model wrote.
func withoutSecrets(env []string) []string {
	var out []string
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		if !strings.HasPrefix(name, "MEANWHILE_") && !strings.HasSuffix(name, "_API_KEY") {
			out = append(out, e)
		}
	}
	return out
}

// Tools returns bash, bash_output and bash_kill.
func (s *Shell) Tools() []tool.Tool {
	return []tool.Tool{
		runTool{s},
		jobTool{s: s, spec: outputSpec, run: s.output},
		jobTool{s: s, spec: killSpec, run: s.kill},
	}
}

// Close ends every command, in the foreground as aborted, and waits for them.
// Commands cannot be started afterwards.
func (s *Shell) Close() {
	s.close()
	defer s.foreground.Wait()
	s.mu.Lock()
	s.closed = true
	jobs := append([]*job(nil), s.jobs...)
	s.mu.Unlock()
	var wg sync.WaitGroup
	for _, j := range jobs {
		wg.Go(func() { j.kill(s.cfg.Grace) })
	}
	wg.Wait()
}

type runTool struct{ s *Shell }

func (t runTool) Spec() tool.Spec {
	return tool.Spec{
		Name: "bash",
		Description: "Runs a shell command and returns its output, standard and error together. " +
			fmt.Sprintf("A command that takes longer than its timeout (%d s unless given, at most %d) is ended with all its processes. ", int(t.s.cfg.Timeout.Seconds()), int(t.s.cfg.TimeoutMax.Seconds())) +
			"For servers, watchers and long builds set background: the call returns an id at once, without a timeout; read it with bash_output, end it with bash_kill. " +
			"Each call is a new shell: directory and variables do not carry over. There is no terminal and no input.",
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"command":{"type":"string","description":"what to run"},` +
			`"timeout":{"type":"integer","minimum":1,"description":"seconds until the command is ended; not with background"},` +
			`"background":{"type":"boolean","description":"return at once and let it run"}},` +
			`"required":["command"],"additionalProperties":false}`),
	}
}

type runArguments struct {
	Command    string `json:"command"`
	Timeout    *int64 `json:"timeout"`
	Background bool   `json:"background"`
}

func (t runTool) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	var args runArguments
	if err := decode(c.Arguments, &args); err != nil {
		return tool.Result{}, err
	}
	switch {
	case strings.TrimSpace(args.Command) == "":
		return tool.Result{}, badArguments("command is empty; send the command to run")
	case len(args.Command) > maxCommand:
		return tool.Result{}, badArguments(fmt.Sprintf("command has %d bytes, at most %d; write it to a file and run that", len(args.Command), maxCommand))
	case strings.ContainsRune(args.Command, 0):
		return tool.Result{}, badArguments("command holds a zero byte; leave it out")
	case args.Background && args.Timeout != nil:
		return tool.Result{}, badArguments("timeout does not go with background; leave one of them out")
	}
	if args.Background {
		return t.s.startJob(args.Command)
	}
	d, err := t.s.timeout(args.Timeout, "timeout")
	if err != nil {
		return tool.Result{}, badArguments(err.Error())
	}
	return t.s.run(ctx, args.Command, d)
}

// timeout turns the model's seconds into a duration.
func (s *Shell) timeout(seconds *int64, name string) (time.Duration, error) {
	if seconds == nil {
		return deadline.Clamp(nil, s.cfg.Timeout, s.cfg.TimeoutMax, name)
	}
	// Cut before multiplying: a year too many must not wrap around.
	most := int64(s.cfg.TimeoutMax/time.Second) + 1
	d := time.Duration(min(max(*seconds, -1), most)) * time.Second
	return deadline.Clamp(&d, s.cfg.Timeout, s.cfg.TimeoutMax, name)
}

// run runs a foreground command to its one outcome.
func (s *Shell) run(ctx context.Context, text string, d time.Duration) (tool.Result, error) {
	if ctx.Err() != nil {
		return tool.Result{}, bashError(CodeAborted, "the turn was cancelled before the command started")
	}
	if !s.enter() {
		return tool.Result{}, bashError(CodeClosed, "the agent is closing; no command was started")
	}
	defer s.foreground.Done()
	begin := time.Now()
	dctx, cancel := deadline.New(ctx, d, CodeTimeout)
	defer cancel()
	defer context.AfterFunc(s.closing, cancel)()
	out := &capture{headMax: s.cfg.MaxOutput / 2, tailMax: s.cfg.MaxOutput - s.cfg.MaxOutput/2}
	c, err := s.start(text, out)
	if err != nil {
		return tool.Result{}, bashError(CodeStart, "the command could not be started: "+err.Error())
	}
	exited := c.wait(dctx)
	var left int
	if !exited {
		left = c.end(s.cfg.Grace)
	}
	swept, state := c.finish(s.cfg.Grace)
	output, missing := out.text()
	if exited {
		return result(output, state, swept, missing, time.Since(begin)), nil
	}
	var note string
	if left > 0 {
		note = fmt.Sprintf(" %d of its processes could not be ended.", left)
	}
	if r := deadline.Of(context.Cause(dctx), CodeTimeout); r != nil {
		return tool.Result{}, bashError(CodeTimeout, fmt.Sprintf("the command was ended after %v.%s Give it a longer timeout, or run it in the background. Its output until then:\n%s", r.Timeout, note, output))
	}
	return tool.Result{}, bashError(CodeAborted, "the command was ended because the turn was cancelled or the agent closed."+note+" Its output until then:\n"+output)
}

// enter counts a foreground command in, unless the shell is closed.
func (s *Shell) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.foreground.Add(1)
	}
	return !s.closed
}

// runMeta is for views.
type runMeta struct {
	ExitCode   int   `json:"exitCode"`
	DurationMs int64 `json:"durationMs"`
	LeftOut    int64 `json:"leftOut,omitempty"` // bytes
}

func result(output string, state *os.ProcessState, swept int, missing int64, took time.Duration) tool.Result {
	code, how := status(state)
	var b strings.Builder
	b.WriteString(output)
	line := func(s string) {
		if b.Len() > 0 && !strings.HasSuffix(b.String(), "\n") {
			b.WriteByte('\n')
		}
		b.WriteString("[" + s + "]\n")
	}
	if code != 0 {
		line(how)
	}
	if swept > 0 {
		line(fmt.Sprintf("%d processes it left running were ended; use background for those", swept))
	}
	if b.Len() == 0 {
		line("no output")
	}
	meta, _ := json.Marshal(runMeta{ExitCode: code, DurationMs: took.Milliseconds(), LeftOut: missing})
	return tool.Result{Text: b.String(), Meta: meta}
}

func bashError(code, message string) *tool.Error {
	return &tool.Error{Name: "BashError", Code: code, Message: message}
}

func badArguments(message string) *tool.Error { return bashError(CodeArguments, message) }

// decode reads arguments strictly, with errors the model can act on.
func decode(arguments string, into any) error {
	d := json.NewDecoder(strings.NewReader(arguments))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			want := map[string]string{"int64": "a whole number", "bool": "true or false", "string": "a string"}[t.Type.String()]
			if t.Field == "" || want == "" {
				return badArguments("the arguments are not one JSON object; send what the schema says")
			}
			return badArguments(fmt.Sprintf("%s must be %s, not %s", t.Field, want, t.Value))
		}
		return badArguments("the arguments are not what the schema says: " + strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := d.Token(); err != io.EOF {
		return badArguments("there is text after the arguments; send one JSON object")
	}
	return nil
}
