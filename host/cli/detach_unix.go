//go:build unix

package cli

import "syscall"

// detached puts a process into a session of its own, so that neither a signal
// to ours nor the end of its terminal reaches it.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
