package main

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
)

const benchPayload = `{"session_id":"s","cwd":"/","hook_event_name":"PostToolUse","tool_name":"Bash"}`

// BenchmarkHook is what an agent waits for at each of its hooks: a whole process,
// with nothing to hand over. It should stay far below 50 ms.
func BenchmarkHook(b *testing.B) {
	data, err := os.MkdirTemp("", "mw")
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(data)
	run := func(b *testing.B, data string) {
		for b.Loop() {
			c := exec.Command("meanwhile", "hook", "claude-code", "--data", data)
			c.Stdin = strings.NewReader(benchPayload)
			if out, err := c.CombinedOutput(); err != nil || len(out) > 0 {
				b.Fatalf("%v: %s", err, out)
			}
		}
	}
	b.Run("no host", func(b *testing.B) { run(b, data) })

	host := exec.Command("meanwhile", "serve", "--listen", "127.0.0.1:0", "--data", data, "--log", "error")
	out, err := host.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := host.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = host.Process.Kill()
		_ = host.Wait()
	}()
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		b.Fatal(err)
	}
	b.Run("never asked", func(b *testing.B) { run(b, data) })
	ask := exec.Command("meanwhile", "ask", "Why?", "--timeout", "1", "--session", "claude-code:s", "--data", data, "-q")
	if err := ask.Run(); err == nil {
		b.Fatal("somebody answered")
	}
	b.Run("empty inbox", func(b *testing.B) { run(b, data) })
}
