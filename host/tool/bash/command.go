package bash

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"sync"
	"time"

	"meanwhile/host/internal/id"
)

// drainTime is how long output is awaited after the last process that counts
// has ended. It is spent only where a process that got away holds the pipe.
const drainTime = time.Second

// markName is the variable that marks a command's family.
const markName = "MEANWHILE_COMMAND"

// command is one running shell command.
type command struct {
	cmd     *exec.Cmd
	family  family
	out     *capture
	pipe    *os.File
	exited  chan struct{} // closed when the leader has exited; it is not reaped yet
	drained chan struct{} // closed when its output was read to the end, or given up

	mu     sync.Mutex // held while the leader's number is used, and to reap it
	reaped bool
}

// start starts a shell with text.
func (s *Shell) start(text string, out *capture) (*command, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer w.Close()
	mark := markName + "=" + id.New()
	cmd := exec.Command(s.cfg.Shell, "-c", text)
	cmd.Dir = s.cfg.Dir
	cmd.Env = append(append([]string(nil), s.env...), mark)
	cmd.Stdout, cmd.Stderr = w, w // one pipe, so that the two keep their order
	cmd.SysProcAttr = ownGroup()
	if err := cmd.Start(); err != nil {
		r.Close()
		return nil, err
	}
	c := &command{
		cmd: cmd, out: out, pipe: r,
		family:  family{leader: cmd.Process.Pid, mark: mark},
		exited:  make(chan struct{}),
		drained: make(chan struct{}),
	}
	go func() {
		defer close(c.exited)
		awaitExit(cmd)
	}()
	go func() {
		defer close(c.drained)
		defer r.Close()
		buf := make([]byte, 32<<10)
		for {
			n, err := r.Read(buf)
			out.Write(buf[:n])
			if err != nil {
				return // end, or the deadline that finish set
			}
		}
	}()
	return c, nil
}

// wait waits for the leader's exit or the context's end, and prefers the exit.
func (c *command) wait(ctx context.Context) (exited bool) {
	select {
	case <-c.exited:
		return true
	case <-ctx.Done():
	}
	select {
	case <-c.exited:
		return true
	default:
		return false
	}
}

// end ends the whole family, and finish does the rest. It says how many
// processes would not go.
func (c *command) end(grace time.Duration) (left int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reaped {
		return 0
	}
	return c.family.end(grace, false)
}

// finish closes the books on a command whose leader has exited or was killed:
// the rest of its group is ended, its output read, the leader reaped. The state
// is nil for a leader that even KILL did not end; it is reaped when it goes.
func (c *command) finish(grace time.Duration) (swept int, state *os.ProcessState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	swept = c.family.sweep(grace)
	c.pipe.SetReadDeadline(time.Now().Add(drainTime))
	<-c.drained
	select {
	case <-c.exited:
		c.reaped = true
		return swept, reap(c.cmd)
	case <-time.After(drainTime):
	}
	go func() {
		<-c.exited
		c.mu.Lock()
		defer c.mu.Unlock()
		c.reaped = true
		reap(c.cmd)
	}()
	return swept, nil
}

// status describes how a command exited.
func status(state *os.ProcessState) (code int, text string) {
	if state == nil {
		return -1, "it could not be ended and may still run"
	}
	return state.ExitCode(), state.String()
}

var errNoShell = errors.New("no shell: neither /bin/bash nor /bin/sh is there")

func findShell() (string, error) {
	for _, path := range []string{"/bin/bash", "/usr/bin/bash", "/bin/sh"} {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", errNoShell
}
