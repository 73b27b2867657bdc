package bash

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// killRounds bounds how often new members are looked for and killed: each
// round kills all that are found, so only a fork bomb needs more than two.
const killRounds = 50

// pollEvery is how often processes without a pidfd are looked at.
const pollEvery = 20 * time.Millisecond

// killWait is how long one round waits for the killed to be gone.
const killWait = time.Second

// family is a command's processes; doc.go says which those are.
type family struct {
	leader int // its process number is also its group's
	mark   string
}

func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitExit waits until the leader has exited and leaves it unreaped.
func awaitExit(cmd *exec.Cmd) {
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return
		}
	}
}

func reap(cmd *exec.Cmd) *os.ProcessState {
	cmd.Wait()
	return cmd.ProcessState
}

// member is one process, held by a pidfd so that its number cannot come to
// mean another. Where the kernel has none (before 5.3), fd is negative and the
// number must do.
type member struct {
	process
	fd int
}

// end ends the family, or only its group, and returns how many would not go.
func (f family) end(grace time.Duration, groupOnly bool) (left int) {
	members := f.members(groupOnly)
	f.signal(members, unix.SIGTERM)
	await(members, grace)
	release(members)
	for range killRounds {
		members = f.members(groupOnly)
		if left = len(members); left == 0 {
			return 0
		}
		f.signal(members, unix.SIGKILL)
		await(members, killWait)
		release(members)
	}
	return left
}

// sweep ends what an exited leader left in its group and says how many that
// were.
func (f family) sweep(grace time.Duration) int {
	members := f.members(true)
	n := len(members)
	release(members)
	if n > 0 {
		f.end(grace, true)
	}
	return n
}

// signal reaches the group at once, and the others one by one. The group's
// number is safe: its leader is not reaped.
func (f family) signal(members []member, sig unix.Signal) {
	unix.Kill(-f.leader, sig)
	for _, m := range members {
		if m.fd >= 0 {
			unix.PidfdSendSignal(m.fd, sig, nil, 0)
		} else {
			unix.Kill(m.pid, sig)
		}
	}
}

// await waits until all members are gone, at most for d.
func await(members []member, d time.Duration) {
	deadline := time.Now().Add(d)
	for {
		left := time.Until(deadline)
		fds := make([]unix.PollFd, 0, len(members))
		there := members[:0:0]
		for _, m := range members {
			if !m.gone() {
				there = append(there, m)
				fds = append(fds, unix.PollFd{Fd: int32(m.fd), Events: unix.POLLIN})
				if m.fd < 0 {
					left = min(left, pollEvery) // poll skips it: look again soon
				}
			}
		}
		if members = there; len(members) == 0 || !time.Now().Before(deadline) {
			return
		}
		if _, err := unix.Poll(fds, int(left.Milliseconds())+1); err != nil && err != unix.EINTR {
			return
		}
	}
}

func (m member) gone() bool {
	p, ok := readProcess(m.pid)
	return !ok || p.start != m.start
}

func release(members []member) {
	for _, m := range members {
		if m.fd >= 0 {
			unix.Close(m.fd)
		}
	}
}

// process is what /proc says about one process.
type process struct {
	pid, parent, group int
	start              uint64
	marked             bool
}

// members finds the living members. A process is looked at again after its
// pidfd was opened: if it is still the same then, the pidfd is its own.
func (f family) members(groupOnly bool) []member {
	var members []member
	for _, p := range f.find(groupOnly) {
		m := member{process: p, fd: -1}
		switch fd, err := unix.PidfdOpen(p.pid, 0); err {
		case nil:
			m.fd = fd
		case unix.ESRCH:
			continue
		}
		if m.gone() {
			release([]member{m})
			continue
		}
		members = append(members, m)
	}
	return members
}

func (f family) find(groupOnly bool) []process {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	names, _ := dir.Readdirnames(-1)
	dir.Close()
	self := os.Getpid()
	all := make([]process, 0, len(names))
	in := map[int]bool{f.leader: true}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == self || pid == 1 {
			continue
		}
		if p, ok := readProcess(pid); ok {
			if p.group != f.leader && !groupOnly {
				p.marked = f.marks(pid)
			}
			all = append(all, p)
		}
	}
	// Descendants: a child may be listed before its parent, so go round until
	// nothing is added.
	for added := true; added; {
		added = false
		for _, p := range all {
			if !in[p.pid] && (p.group == f.leader || p.marked || !groupOnly && in[p.parent]) {
				in[p.pid] = true
				added = true
			}
		}
	}
	var found []process
	for _, p := range all {
		if in[p.pid] {
			found = append(found, p)
		}
	}
	return found
}

// marks reports whether a process carries the mark. It cannot be read of
// another user's process, which could not be signalled either.
func (f family) marks(pid int) bool {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	for entry := range bytes.SplitSeq(env, []byte{0}) {
		if string(entry) == f.mark {
			return true
		}
	}
	return false
}

// readProcess reads /proc/pid/stat. It is not ok for a process that is gone or
// dead and not reaped.
func readProcess(pid int) (process, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, false
	}
	return parseStat(pid, b)
}

func parseStat(pid int, b []byte) (process, bool) {
	// The name in brackets may hold anything, brackets and spaces included.
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return process{}, false
	}
	f := bytes.Fields(b[i+1:])
	if len(f) < 20 || f[0][0] == 'Z' || f[0][0] == 'X' {
		return process{}, false
	}
	parent, err1 := strconv.Atoi(string(f[1]))
	group, err2 := strconv.Atoi(string(f[2]))
	start, err3 := strconv.ParseUint(string(f[19]), 10, 64)
	if err1 != nil || err2 != nil || err3 != nil {
		return process{}, false
	}
	return process{pid: pid, parent: parent, group: group, start: start}, true
}
