package crash

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"meanwhile/host/app"
	"meanwhile/host/gateway/wsconn"
	"meanwhile/host/internal/id"
	"meanwhile/host/jsonrpc"
)

type obj = map[string]any

// load is the clients of one host.
type load struct {
	run   *run
	host  *host
	dead  atomic.Bool   // the host was killed: calls fail now
	fails bool          // the host is to end by itself
	acks  atomic.Int64  // confirmations that are still to come before the kill; none: negative
	shot  chan struct{} // closed by the last one
	web   *http.Client
	mu    sync.Mutex
	asks  []listed // continued, as host/follow has them
	local *jsonrpc.Conn
}

// listed is one ask that waits for a late answer.
type listed struct{ session, call, question string }

// errGone ends a client whose host was killed.
var errGone = errors.New("the host is gone")

// confirmed runs when the host has confirmed something, before anything else
// does: an instant in which a host that confirms too early has it nowhere yet.
func (l *load) confirmed() {
	if l.acks.Add(-1) == 0 {
		l.dead.Store(true)
		_ = l.host.cmd.Process.Signal(syscall.SIGKILL) // it may have ended
		close(l.shot)
	}
}

// caller makes one call by some road.
type caller func(ctx context.Context, method string, params, result any) error

// fate says what an error of a call means: nil for a refusal that may come, and
// errGone for a broken connection, which is right only once the host was killed.
func (l *load) fate(method string, err error) error {
	var refused *jsonrpc.Error
	if !errors.As(err, &refused) {
		return fmt.Errorf("%s: %w: %w", method, errGone, err)
	}
	var data struct{ Code string }
	_ = json.Unmarshal(refused.Data, &data) // without data it is a fault
	switch data.Code {
	case "REPLY_QUEUED", "HOST_STOPPING", "CALLER_NOT_LIVE":
		return nil
	}
	return fmt.Errorf("%s: %w (%s)", method, err, refused.Data)
}

// prepare connects, makes tokens once, and asks what must hold after each start.
func (l *load) prepare(ctx context.Context) error {
	l.web = &http.Client{Transport: &http.Transport{}}
	conn, err := l.socket(ctx)
	if err != nil {
		return err
	}
	l.local = conn
	if l.run.tokens.ask == "" {
		for scope, to := range map[string]*string{"ask": &l.run.tokens.ask, "answer": &l.run.tokens.answer} {
			var out struct{ Token string }
			scopes := []string{scope}
			if scope == "answer" {
				scopes = append(scopes, "read")
			}
			if err := conn.Call(ctx, "token/create", obj{"label": scope, "scopes": scopes}, &out); err != nil {
				return err
			}
			*to = out.Token
		}
	}
	if err := l.repaired(ctx); err != nil {
		return err
	}
	return l.known(ctx)
}

// repaired wants no cut turn left open.
func (l *load) repaired(ctx context.Context) error {
	enough := errors.New("enough")
	err := l.local.Stream(ctx, "host/follow", obj{}, func(raw json.RawMessage) error {
		var list struct {
			Sessions []struct {
				ID, Status string
				Agent      struct{ Kind string }
			}
		}
		if err := json.Unmarshal(raw, &list); err != nil {
			return err
		}
		for _, s := range list.Sessions {
			if s.Status == "damaged" || s.Status == "running" && s.Agent.Kind == "external" {
				return fmt.Errorf("%w: session %s is %s", errNotReady, s.ID, s.Status)
			}
		}
		return enough
	})
	if errors.Is(err, enough) {
		return nil
	}
	return err
}

// known sends some accepted answers again: they are known, and no second one is
// taken.
func (l *load) known(ctx context.Context) error {
	led := l.run.led
	led.mu.Lock()
	all := led.accepted
	led.mu.Unlock()
	for i := range min(6, len(all)) {
		a := all[len(all)-1-i]
		var out struct{ Accepted bool }
		if err := l.post(ctx, l.run.tokens.answer, "userQuestions/answer", answer(a.session, a.call, "q", a.text, a.message), &out); err != nil || !out.Accepted {
			return fmt.Errorf("%w: answer %s was accepted, and sent again it is %v, %w", errNotReady, a.message, out.Accepted, err)
		}
		err := l.post(ctx, l.run.tokens.answer, "userQuestions/answer", answer(a.session, a.call, "q", "second", id.New()), &out)
		var refused *jsonrpc.Error
		if err != nil && !errors.As(err, &refused) || err == nil && out.Accepted {
			return fmt.Errorf("%w: call %s took a second answer: %v, %w", errNotReady, a.call, out.Accepted, err)
		}
	}
	return nil
}

func answer(session, call, question, text, submission string) obj {
	return obj{"sessionId": session, "callId": call, "submissionId": submission,
		"answer": obj{"answers": []obj{{"id": question, "selected": []string{}, "custom": text}}}}
}

func (l *load) close() {
	if l.local != nil {
		l.local.Close(jsonrpc.CloseNormal, "done")
		l.local.Wait()
	}
	l.web.CloseIdleConnections()
}

// clients are all that run at once.
func (l *load) clients() []func(context.Context, *rand.Rand) error {
	var all []func(context.Context, *rand.Rand) error
	for i := range 3 {
		all = append(all, func(ctx context.Context, rng *rand.Rand) error {
			return l.asker(ctx, rng, fmt.Sprint("socket", i), l.overSocket)
		})
	}
	for i := range 2 {
		all = append(all, func(ctx context.Context, rng *rand.Rand) error {
			return l.asker(ctx, rng, fmt.Sprint("post", i), l.overPost)
		})
	}
	return append(all, l.person, l.person, l.latecomer, l.prompter)
}

func (l *load) socket(ctx context.Context) (*jsonrpc.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", app.SocketPath(l.run.data))
	if err != nil {
		return nil, err
	}
	return l.greet(ctx, jsonrpc.Lines(c), "", nil)
}

func (l *load) greet(ctx context.Context, t jsonrpc.Transport, token string, h jsonrpc.Handler) (*jsonrpc.Conn, error) {
	conn := jsonrpc.NewConn(t, h, jsonrpc.Options{})
	params := obj{"protocol": 1, "client": obj{"name": "crash", "version": "0"}}
	if token != "" {
		params["token"] = token
	}
	if err := conn.Call(ctx, "initialize", params, nil); err != nil {
		conn.Close(jsonrpc.CloseNormal, "")
		conn.Wait()
		return nil, err
	}
	return conn, nil
}

// post makes one call without a connection.
func (l *load) post(ctx context.Context, token, method string, params, result any) error {
	raw, err := jsonrpc.Encode(params)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+l.host.address+"/rpc", bytes.NewReader(jsonrpc.EncodeCall(jsonrpc.IntID(1), method, raw)))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	resp, err := l.web.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	var out struct {
		Result json.RawMessage
		Error  *jsonrpc.Error
	}
	if err := json.Unmarshal(body, &out); err != nil {
		return fmt.Errorf("status %d: %w", resp.StatusCode, err)
	}
	if out.Error != nil {
		return out.Error
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(out.Result, result)
}

// overSocket and overPost are the two roads of an outside agent.
func (l *load) overSocket(ctx context.Context) (caller, func(), error) {
	conn, err := l.socket(ctx)
	if err != nil {
		return nil, nil, err
	}
	return conn.Call, func() { conn.Close(jsonrpc.CloseNormal, ""); conn.Wait() }, nil
}

func (l *load) overPost(context.Context) (caller, func(), error) {
	return func(ctx context.Context, method string, params, result any) error {
		return l.post(ctx, l.run.tokens.ask, method, params, result)
	}, func() {}, nil
}

// settled is what ends a client: nothing to say after the kill.
func (l *load) settled(ctx context.Context, err error) error {
	if (l.fails || l.dead.Load()) && errors.Is(err, errGone) || ctx.Err() != nil {
		return nil
	}
	return err
}

// web-socket client of a person.
func (l *load) connect(ctx context.Context, h jsonrpc.Handler) (*jsonrpc.Conn, error) {
	t, err := wsconn.Dial(ctx, "ws://"+l.host.address+"/rpc", wsconn.DialOptions{Header: http.Header{"Origin": {"http://" + l.host.address}}})
	if err != nil {
		return nil, err
	}
	return l.greet(ctx, t, l.run.tokens.answer, h)
}

// pause waits a moment, or until the context ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
