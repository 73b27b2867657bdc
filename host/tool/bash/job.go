package bash

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"meanwhile/host/internal/id"
	"meanwhile/host/tool"
	"meanwhile/shared/deadline"
)

// job is one background command. Its id is random: after a restart of the host
// an id from the conversation must not name another command.
type job struct {
	id   string
	text string
	c    *command
	out  *capture
	done chan struct{} // closed when it has ended and its output is whole

	mu     sync.Mutex
	seen   int64 // bytes of output handed out
	killed bool
	state  *os.ProcessState // once done
}

// startJob starts a background command.
func (s *Shell) startJob(text string) (tool.Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return tool.Result{}, bashError(CodeClosed, "the agent is closing; no command was started")
	}
	if s.tidy() >= MaxRunning {
		return tool.Result{}, bashError(CodeTooMany, fmt.Sprintf("%d background commands run already; end one with bash_kill first: %s", MaxRunning, s.running()))
	}
	out := &capture{tailMax: s.cfg.MaxOutput}
	c, err := s.start(text, out)
	if err != nil {
		return tool.Result{}, bashError(CodeStart, "the command could not be started: "+err.Error())
	}
	j := &job{id: id.New()[:8], text: text, c: c, out: out, done: make(chan struct{})}
	s.jobs = append(s.jobs, j)
	go func() {
		defer close(j.done)
		<-c.exited
		_, state := c.finish(s.cfg.Grace)
		j.mu.Lock()
		j.state = state
		j.mu.Unlock()
	}()
	return tool.Result{
		Text: fmt.Sprintf("[running in the background, id %s; read it with bash_output, end it with bash_kill]\n", j.id),
		Meta: json.RawMessage(`{"id":"` + j.id + `"}`),
	}, nil
}

// tidy forgets the oldest ended jobs over the limit and counts the running. It
// is called with the lock held, as is running.
func (s *Shell) tidy() (running int) {
	for _, j := range s.jobs {
		if !j.ended() {
			running++
		}
	}
	over := len(s.jobs) - running - maxEnded
	kept := s.jobs[:0]
	for _, j := range s.jobs {
		if over > 0 && j.ended() {
			over--
			continue
		}
		kept = append(kept, j)
	}
	clear(s.jobs[len(kept):])
	s.jobs = kept
	return running
}

func (s *Shell) running() string {
	var list []string
	for _, j := range s.jobs {
		if !j.ended() {
			list = append(list, j.id)
		}
	}
	return strings.Join(list, ", ")
}

func (j *job) ended() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// kill ends a job's whole family and waits until its books are closed.
func (j *job) kill(grace time.Duration) {
	if !j.ended() {
		j.mu.Lock()
		j.killed = true
		j.mu.Unlock()
		j.c.end(grace)
	}
	<-j.done
}

// report is the output since the last report, and the state.
func (j *job) report() tool.Result {
	ended := j.ended() // before the output is taken, so that an ended job's is whole
	j.mu.Lock()
	defer j.mu.Unlock()
	var text string
	text, j.seen = j.out.since(j.seen)
	if text == "" {
		text = "[no new output]\n"
	} else if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if !ended {
		return tool.Result{Text: text + "[still running]\n", Meta: json.RawMessage(`{"id":"` + j.id + `","running":true}`)}
	}
	code, how := status(j.state)
	if j.killed {
		how = "killed, " + how
	}
	return tool.Result{
		Text: text + "[ended: " + how + "]\n",
		Meta: json.RawMessage(fmt.Sprintf(`{"id":%q,"running":false,"exitCode":%d}`, j.id, code)),
	}
}

var outputSpec = tool.Spec{
	Name:        "bash_output",
	Description: "Returns what a background command has written since the last call, and whether it still runs. With wait it waits up to that many seconds for the command to end.",
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"id":{"type":"string","description":"the id that bash returned"},` +
		`"wait":{"type":"integer","minimum":1,"description":"seconds to wait for the end"}},` +
		`"required":["id"],"additionalProperties":false}`),
}

var killSpec = tool.Spec{
	Name:        "bash_kill",
	Description: "Ends a background command with all its processes and returns its last output.",
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"id":{"type":"string","description":"the id that bash returned"}},` +
		`"required":["id"],"additionalProperties":false}`),
}

type jobArguments struct {
	ID   string `json:"id"`
	Wait *int64 `json:"wait"`
}

// jobTool is a tool that acts on one job.
type jobTool struct {
	s    *Shell
	spec tool.Spec
	run  func(ctx context.Context, j *job, args jobArguments) (tool.Result, error)
}

func (t jobTool) Spec() tool.Spec { return t.spec }

func (t jobTool) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	var args jobArguments
	if err := decode(c.Arguments, &args); err != nil {
		return tool.Result{}, err
	}
	j, err := t.s.find(args.ID)
	if err != nil {
		return tool.Result{}, err
	}
	return t.run(ctx, j, args)
}

func (s *Shell) find(id string) (*job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.jobs {
		if j.id == id {
			return j, nil
		}
	}
	message := "there is no background command with this id; none runs"
	if list := s.running(); list != "" {
		message = "there is no background command with this id; running are: " + list
	}
	return nil, bashError(CodeUnknownID, message)
}

func (s *Shell) output(ctx context.Context, j *job, args jobArguments) (tool.Result, error) {
	if args.Wait != nil {
		d, err := s.timeout(args.Wait, "wait")
		if err != nil {
			return tool.Result{}, badArguments(err.Error())
		}
		wctx, cancel := deadline.New(ctx, d, "BASH_WAIT")
		defer cancel()
		select {
		case <-j.done:
		case <-wctx.Done():
		}
		if ctx.Err() != nil && !j.ended() {
			return tool.Result{}, bashError(CodeAborted, "the wait was ended because the turn was cancelled; the command still runs")
		}
	}
	return j.report(), nil
}

func (s *Shell) kill(_ context.Context, j *job, args jobArguments) (tool.Result, error) {
	if args.Wait != nil {
		return tool.Result{}, badArguments("wait is not for bash_kill; leave it out")
	}
	j.kill(s.cfg.Grace)
	return j.report(), nil
}
