package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"meanwhile/host/app"
	"meanwhile/host/gateway/wsconn"
	"meanwhile/host/jsonrpc"
)

// within bounds everything that is waited for.
const within = 5 * time.Minute

type obj = map[string]any

// process is one host on a data directory.
type process struct {
	b       *bench
	dir     string
	cmd     *exec.Cmd
	address string
	ready   time.Duration // from its start until it listened
	stderr  bytes.Buffer
	tokens  tokens
}

type tokens struct{ ask, answer string }

// start runs a host until it is ended. The tokens of an earlier one hold.
func (b *bench) start(dir, part string, t tokens) *process {
	b.t.Helper()
	p := &process{b: b, dir: dir, tokens: t}
	config := filepath.Join(dir, "config.toml")
	b.must(os.WriteFile(config, nil, 0o600))
	p.cmd = exec.Command(os.Args[0], "serve", "--listen", "127.0.0.1:0", "--data", filepath.Join(dir, "data"),
		"--config", config, "--ask-mode", "timed", "--log", "warn")
	p.cmd.Env = append(os.Environ(), asHost+"=1", profileVar+"="+b.profileFor(part))
	p.cmd.Stderr = &p.stderr
	out, err := p.cmd.StdoutPipe()
	b.must(err)
	begin := time.Now()
	b.must(p.cmd.Start())
	b.t.Cleanup(func() { p.end(syscall.SIGKILL) })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.t.Fatalf("the host did not start: %v\n%s", err, &p.stderr)
	}
	p.ready = time.Since(begin)
	go io.Copy(io.Discard, out)
	p.address, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "http://"), "/")
	if p.tokens.ask == "" {
		local := p.local()
		defer local.Close(jsonrpc.CloseNormal, "")
		p.tokens = tokens{p.token(local, "ask"), p.token(local, "answer", "read")}
	}
	return p
}

// end signals the process, if it is there, and waits for it.
func (p *process) end(with syscall.Signal) {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Signal(with) // it may have ended
		_ = p.cmd.Wait()               // a killed one says so
	}
}

func (p *process) token(c *jsonrpc.Conn, scopes ...string) string {
	p.b.t.Helper()
	var out struct{ Token string }
	p.b.must(c.Call(p.b.t.Context(), "token/create", obj{"label": scopes[0], "scopes": scopes}, &out))
	return out.Token
}

// local is the socket in the data directory.
func (p *process) local() *jsonrpc.Conn {
	p.b.t.Helper()
	c, err := net.Dial("unix", app.SocketPath(filepath.Join(p.dir, "data")))
	p.b.must(err)
	return p.greet(jsonrpc.Lines(c), "", nil)
}

// connect is a WebSocket client with one of the tokens.
func (p *process) connect(token string, h jsonrpc.Handler) *jsonrpc.Conn {
	p.b.t.Helper()
	t, err := wsconn.Dial(p.b.t.Context(), "ws://"+p.address+"/rpc", wsconn.DialOptions{Header: http.Header{"Origin": {"http://" + p.address}}})
	p.b.must(err)
	return p.greet(t, token, h)
}

func (p *process) greet(t jsonrpc.Transport, token string, h jsonrpc.Handler) *jsonrpc.Conn {
	p.b.t.Helper()
	conn := jsonrpc.NewConn(t, h, jsonrpc.Options{MaxCalls: 1 << 18, MaxQueue: 1 << 16, MaxQueued: 64 << 20})
	params := obj{"protocol": 1, "client": obj{"name": "bench", "version": "0"}}
	if token != "" {
		params["token"] = token
	}
	p.b.must(conn.Call(p.b.t.Context(), "initialize", params, nil))
	return conn
}

// agent is one outside agent with its session.
type agent struct {
	*jsonrpc.Conn
	session string
}

func (p *process) agents(n int) []agent {
	p.b.t.Helper()
	out := make([]agent, n)
	for i := range out {
		c := p.connect(p.tokens.ask, nil)
		out[i] = agent{c, p.session(c, i)}
	}
	return out
}

func (p *process) session(c *jsonrpc.Conn, i int) string {
	p.b.t.Helper()
	var out struct{ SessionID string }
	name := fmt.Sprint("agent ", i)
	p.b.must(c.Call(p.b.t.Context(), "session/open", obj{"title": name, "key": name, "agent": obj{"kind": "external", "name": name}}, &out))
	return out.SessionID
}

// standing answers an ask or an await.
type standing struct {
	Status, CallID, MessageID string
	RemainingMs               int64
}

func (a agent) ask(ctx context.Context, timeout int, hold time.Duration) (s standing, err error) {
	err = a.Call(ctx, "userQuestions/ask", obj{"sessionId": a.session, "timeout": timeout, "holdMs": hold.Milliseconds(),
		"questions": []obj{{"id": "q", "question": "Which of the two should be taken?",
			"options": []obj{{"label": "The first"}, {"label": "The second"}}}}}, &s)
	return s, err
}

// answers is what every person says.
var answers = obj{"answers": []obj{{"id": "q", "selected": []string{"The first"}}}}

// person answers each question at once.
type person struct {
	*jsonrpc.Conn
	answered, settled atomic.Int64
	done              chan struct{} // closed at the settlement wanted
}

// person connects one; want settlements close done.
func (p *process) person(want int) *person {
	p.b.t.Helper()
	who := &person{done: make(chan struct{})}
	who.Conn = p.connect(p.tokens.answer, jsonrpc.HandlerFunc(func(_ context.Context, q *jsonrpc.Request) (any, error) {
		switch {
		case q.Method == "ping":
			return obj{"time": 0}, nil
		case q.IsCall():
			who.answered.Add(1)
			return answers, nil
		case q.Method == "remote/settled" && who.settled.Add(1) == int64(want):
			close(who.done)
		}
		return nil, nil
	}))
	return who
}

// answer is a late answer.
func (p *process) answer(c *jsonrpc.Conn, session, call, submission string) (bool, error) {
	var out struct{ Accepted bool }
	err := c.Call(p.b.t.Context(), "userQuestions/answer", obj{"sessionId": session, "callId": call, "submissionId": submission, "answer": answers}, &out)
	return out.Accepted, err
}

// resident is the process's memory in bytes, without garbage.
func (p *process) resident() int64 {
	p.b.t.Helper()
	p.b.must(p.cmd.Process.Signal(syscall.SIGUSR1))
	// The signal has no answer: the least of what is seen for a while counts.
	least := int64(1 << 62)
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	for range 10 {
		<-again.C
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
		p.b.must(err)
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); f[0] == "VmRSS:" {
				n, err := strconv.ParseInt(f[1], 10, 64)
				p.b.must(err)
				least = min(least, n<<10)
			}
		}
	}
	return least
}

// disk is the bytes of the data directory.
func (p *process) disk() (n int64) {
	err := filepath.WalkDir(filepath.Join(p.dir, "data"), func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().IsRegular() {
			n += info.Size()
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // compaction removes files meanwhile
		p.b.t.Error(err)
	}
	return n
}

// logBytes is the encoded size of the events of one session.
func (p *process) logBytes(session string) (n int) {
	p.b.t.Helper()
	enough := errors.New("enough")
	c := p.connect(p.tokens.answer, nil)
	defer c.Close(jsonrpc.CloseNormal, "")
	var last int64
	err := c.Stream(p.b.t.Context(), "session/follow", obj{"sessionId": session}, func(raw json.RawMessage) error {
		var item struct {
			Header json.RawMessage
			Seq    int64
			Events []json.RawMessage
		}
		if err := json.Unmarshal(raw, &item); err != nil {
			return err
		}
		if item.Header != nil {
			last = item.Seq
		}
		for _, e := range item.Events {
			n += len(e)
		}
		if item.Header == nil && item.Seq >= last {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		p.b.t.Fatal(err)
	}
	return n
}
