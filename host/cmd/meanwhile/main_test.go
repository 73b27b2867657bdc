package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"meanwhile/host/app"
	"meanwhile/host/jsonrpc"
)

// within bounds every wait for a host.
const within = 30 * time.Second

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"meanwhile": main})
}

func TestScript(t *testing.T) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = "" // each command compiles the module anew
	}
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(env *testscript.Env) error {
			env.Setenv("XDG_CACHE_HOME", cache)
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("LONG", longText())
			// Not below the script's folder: the name of a socket has little room.
			data, err := os.MkdirTemp("", "mw")
			if err != nil {
				return err
			}
			env.Setenv("MEANWHILE_DATA", data)
			h := &host{}
			env.Values[key{}] = h
			env.Defer(func() {
				h.kill()
				os.RemoveAll(data)
			})
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"code":   cmdCode,
			"host":   cmdHost,
			"call":   cmdCall,
			"damage": cmdDamage,
			"fetch":  cmdFetch,
			"cut":    cmdCut,
		},
	})
}

// longText is some kilobytes that do not compress away.
func longText() string {
	random := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, 8<<10)
	for i := range text {
		text[i] = "0123456789abcdef"[random.IntN(16)]
	}
	return string(text)
}

type key struct{}

// host is the one that a script runs in the background.
type host struct {
	cmd    *exec.Cmd
	stderr *logged
}

// logged is what a running host wrote so far.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
	grew chan struct{} // closed by the next Write
}

func newLogged() *logged { return &logged{grew: make(chan struct{})} }

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.grew)
	l.grew = make(chan struct{})
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// await returns once the text was written; false when it was not in time.
func (l *logged) await(text string) bool {
	late := time.After(within)
	for {
		l.mu.Lock()
		found, grew := strings.Contains(l.text.String(), text), l.grew
		l.mu.Unlock()
		if found {
			return true
		}
		select {
		case <-grew:
		case <-late:
			return false
		}
	}
}

func (h *host) kill() {
	if h.cmd != nil {
		_ = h.cmd.Process.Kill() // it may have ended
		_ = h.cmd.Wait()
		h.cmd = nil
	}
}

func hostOf(ts *testscript.TestScript) *host { return ts.Value(key{}).(*host) }

// cmdCode runs a command and checks its exit code: code 2 meanwhile …
func cmdCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N command [args]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// cmdHost runs a host in the background. "host start [args]" waits for the line
// it prints and sets $LINK and $ADDRESS; "host full BLOCKS" is the same on a disk
// that takes no file over so many blocks of 512 bytes. "host stop" interrupts it
// and wants exit code 0; "host failed" waits until it ends by itself and wants
// another; "host kill" ends it as a crash would; "host logged TEXT" looks through
// what it logged.
func cmdHost(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: host start|stop|kill|logged")
	}
	h := hostOf(ts)
	switch args[0] {
	case "start", "full":
		h.stderr = newLogged()
		h.cmd = exec.Command(lookPath(ts), append([]string{"serve", "--listen", "127.0.0.1:0"}, args[1:]...)...)
		if args[0] == "full" {
			h.cmd = exec.Command("sh", "-c", `ulimit -f "$1"; exec "$0" serve --listen 127.0.0.1:0`, lookPath(ts), args[1])
		}
		h.cmd.Dir = ts.Getenv("WORK")
		for _, name := range []string{"PATH", "HOME", "MEANWHILE_DATA", "XDG_CACHE_HOME", "TMPDIR"} {
			h.cmd.Env = append(h.cmd.Env, name+"="+ts.Getenv(name))
		}
		h.cmd.Stderr = h.stderr
		out, err := h.cmd.StdoutPipe()
		ts.Check(err)
		ts.Check(h.cmd.Start())
		late := time.AfterFunc(within, func() { _ = h.cmd.Process.Kill() })
		line, err := bufio.NewReader(out).ReadString('\n')
		late.Stop()
		if err != nil {
			h.kill()
			ts.Fatalf("the host did not start: %v\n%s", err, h.stderr)
		}
		link := strings.TrimSpace(line)
		ts.Setenv("LINK", link)
		address, _, _ := strings.Cut(strings.TrimPrefix(link, "http://"), "/")
		ts.Setenv("ADDRESS", address)
		ts.Setenv("PID", strconv.Itoa(h.cmd.Process.Pid))
	case "stop":
		ts.Check(h.cmd.Process.Signal(syscall.SIGTERM))
		late := time.AfterFunc(within, func() { _ = h.cmd.Process.Kill() })
		err := h.cmd.Wait()
		late.Stop()
		h.cmd = nil
		if err != nil {
			ts.Fatalf("the host stopped with %v\n%s", err, h.stderr)
		}
	case "failed":
		late := time.AfterFunc(within, func() { _ = h.cmd.Process.Kill() })
		err := h.cmd.Wait()
		late.Stop()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 1 {
			ts.Fatalf("the host ended with %v, want exit code 1\n%s", err, h.stderr)
		}
		h.cmd = nil
	case "kill":
		h.kill()
	case "logged":
		if !h.stderr.await(args[1]) {
			ts.Fatalf("%q is not in what the host logged:\n%s", args[1], h.stderr)
		}
	default:
		ts.Fatalf("host %s is no command", args[0])
	}
}

// lookPath finds the program in the script's own path.
func lookPath(ts *testscript.TestScript) string {
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if path, err := exec.LookPath(filepath.Join(dir, "meanwhile")); err == nil {
			return path
		}
	}
	ts.Fatalf("meanwhile is not in the script's PATH")
	return ""
}

// cmdCall calls a method of the running host over its socket and prints the
// result; each member of the result that is a string becomes a variable.
func cmdCall(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: call METHOD PARAMS")
	}
	result, err := callHost(app.SocketPath(ts.Getenv("MEANWHILE_DATA")), args[0], json.RawMessage(args[1]))
	switch {
	case neg && err == nil:
		ts.Fatalf("%s was taken: %s", args[0], result)
	case neg:
		return
	}
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%s\n", result)
	members := map[string]any{}
	ts.Check(json.Unmarshal(result, &members))
	for name, v := range members {
		if text, ok := v.(string); ok {
			ts.Setenv(name, text)
		}
	}
}

func callHost(socket, method string, params json.RawMessage) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	c, err := net.Dial("unix", socket)
	if err != nil {
		return nil, err
	}
	conn := jsonrpc.NewConn(jsonrpc.Lines(c), nil, jsonrpc.Options{})
	defer conn.Wait()
	defer conn.Close(jsonrpc.CloseNormal, "done")
	hello := map[string]any{"protocol": 1, "client": map[string]string{"name": "script", "version": "0"}}
	if err := conn.Call(ctx, "initialize", hello, nil); err != nil {
		return nil, err
	}
	var result json.RawMessage
	return result, conn.Call(ctx, method, params, &result)
}

// cmdFetch gets a path of the running host, with a token if one is given, and
// checks the status: fetch 200 /healthz [token].
func cmdFetch(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: fetch STATUS PATH [TOKEN]")
	}
	r, err := http.NewRequest(http.MethodGet, "http://"+ts.Getenv("ADDRESS")+args[1], nil)
	ts.Check(err)
	if len(args) > 2 {
		r.Header.Set("Authorization", "Bearer "+args[2])
	}
	client := http.Client{Timeout: within, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(r)
	ts.Check(err)
	defer resp.Body.Close()
	_, err = io.Copy(ts.Stdout(), resp.Body)
	ts.Check(err)
	if strconv.Itoa(resp.StatusCode) != args[0] {
		ts.Fatalf("status %d, want %s", resp.StatusCode, args[0])
	}
}

// cmdCut leaves the first half of a file.
func cmdCut(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: cut FILE")
	}
	name := ts.MkAbs(args[0])
	info, err := os.Stat(name)
	ts.Check(err)
	ts.Check(os.Truncate(name, info.Size()/2))
}

// cmdDamage flips one byte of a text in the files of the stopped host's store.
func cmdDamage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: damage TEXT")
	}
	files, err := filepath.Glob(filepath.Join(ts.Getenv("MEANWHILE_DATA"), "store", "*"))
	ts.Check(err)
	hit := 0
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			continue // a folder
		}
		if i := bytes.Index(raw, []byte(args[0])); i >= 0 {
			raw[i] ^= 1
			ts.Check(os.WriteFile(name, raw, 0o600))
			hit++
		}
	}
	if hit == 0 {
		ts.Fatalf("%q is in none of %s", args[0], files)
	}
}
