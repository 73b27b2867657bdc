//go:build unix && !linux

package bash

import (
	"os"
	"os/exec"
	"syscall"
	"time"
)

// family is a command's process group: without /proc there is no more to see.
type family struct {
	leader int
	mark   string
}

func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func awaitExit(cmd *exec.Cmd) { cmd.Wait() }

func reap(cmd *exec.Cmd) *os.ProcessState { return cmd.ProcessState }

func (f family) end(grace time.Duration, _ bool) (left int) {
	if syscall.Kill(-f.leader, syscall.SIGTERM) != nil {
		return 0
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(grace); time.Now().Before(deadline); <-tick.C {
		if syscall.Kill(-f.leader, 0) != nil {
			return 0
		}
	}
	syscall.Kill(-f.leader, syscall.SIGKILL)
	return 0
}

func (f family) sweep(grace time.Duration) int {
	if syscall.Kill(-f.leader, 0) != nil {
		return 0
	}
	f.end(grace, true)
	return 1
}
