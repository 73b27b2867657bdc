package hook

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"
	"unicode/utf8"

	"meanwhile/host/internal/id"
	"meanwhile/shared/event"
)

const (
	// handOverWithin bounds a hook that only looks: the agent waits for it.
	handOverWithin = 3 * time.Second
	// askMargin is what recording, a restarting host and writing may take beside
	// a question's window.
	askMargin = 15 * time.Second
	// holdMax is the longest that one call is held; longer windows take several.
	holdMax = 9 * time.Minute
	// noteWithin is how long an asking hook waits for the note.
	noteWithin = 2 * time.Second
	nameMax    = 200 // characters of a session's key and title
	// WindowDefault is how long a question waits when nobody says otherwise.
	WindowDefault = 2 * time.Minute
)

// Host makes calls on the running host. A refusal is a *jsonrpc.Error.
type Host interface {
	Call(ctx context.Context, method string, params, result any) error
}

// Options of Run; Agent, Host and Notes are needed.
type Options struct {
	Agent string // one of Agents
	// Host connects to the host, once for each hook. Its error means that none
	// is running.
	Host  func(ctx context.Context) (Host, error)
	Notes string // the folder of notes
	// Window is how long a question waits, whole seconds; 0: WindowDefault.
	Window time.Duration
	// Command starts the command lines that the agent is told; "": meanwhile.
	Command string
	// Debug takes what went wrong; nil: nobody is told.
	Debug func(error)
}

// Run serves one hook: it reads the payload and writes what the agent is to
// read, or nothing. It never fails: what goes wrong is for Debug.
func Run(ctx context.Context, o Options, in io.Reader, out io.Writer) {
	if o.Window == 0 {
		o.Window = WindowDefault
	}
	if o.Command == "" {
		o.Command = "meanwhile"
	}
	if err := run(ctx, o, in, out); err != nil && o.Debug != nil {
		o.Debug(err)
	}
}

func run(ctx context.Context, o Options, in io.Reader, out io.Writer) error {
	d, ok := dialectOf(o.Agent)
	if !ok {
		return fmt.Errorf("there are no hooks for %q", o.Agent)
	}
	p, err := readPayload(in)
	if err != nil {
		return err
	}
	m := d.moment(p)
	if m == silent {
		return nil
	}
	r := &runner{o: o, d: d, p: p, out: out, key: keyOf(d.name, p.Session)}
	within := handOverWithin
	var qs []question
	if m == asking {
		if qs, err = readNative(p.Input); err != nil {
			return err
		}
		within = o.Window + askMargin
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if r.host, err = o.Host(ctx); err != nil {
		return err
	}
	if m == asking {
		return r.ask(ctx, qs)
	}
	return r.handOver(ctx, m)
}

// runner is one hook at work.
type runner struct {
	o       Options
	d       *dialect
	p       payload
	out     io.Writer
	host    Host
	key     string
	session string
}

// keyOf is the key of the host's session for the agent's.
func keyOf(agent, session string) string {
	if key := agent + ":" + session; utf8.RuneCountInString(key) <= nameMax {
		return key
	}
	sum := sha256.Sum256([]byte(session))
	return agent + ":" + hex.EncodeToString(sum[:])
}

// open finds the session. Without create, one that does not exist is "".
func (r *runner) open(ctx context.Context, create bool) error {
	title := r.d.name
	if r.p.CWD != "" {
		title += " in " + filepath.Base(r.p.CWD)
	}
	if utf8.RuneCountInString(title) > nameMax {
		title = r.d.name
	}
	agent := map[string]any{"kind": event.KindExternal, "name": r.d.name}
	if r.p.CWD != "" {
		agent["cwd"] = r.p.CWD
	}
	var got struct{ SessionID string }
	err := r.host.Call(ctx, "session/open", map[string]any{"title": title, "agent": agent, "key": r.key, "existing": !create}, &got)
	if code, _, _ := refusal(err); code == "NO_SESSION" && !create {
		return nil
	}
	r.session = got.SessionID
	return err
}

// acknowledge tells the host what the hooks before this one wrote.
func (r *runner) acknowledge(ctx context.Context, n *note) error {
	if len(n.Given) == 0 {
		return nil
	}
	err := r.host.Call(ctx, "inbox/admit", map[string]any{"sessionId": r.session, "messageIds": n.Given}, nil)
	if err == nil {
		n.Given = nil
	}
	return err
}

// handOver writes what waits for the agent.
func (r *runner) handOver(ctx context.Context, m moment) (err error) {
	if err := r.open(ctx, false); err != nil || r.session == "" {
		return err
	}
	n, err := openNote(r.o.Notes, r.key)
	if err != nil {
		return err
	}
	defer n.close()
	defer func() { err = errors.Join(err, n.save()) }()
	if err := r.acknowledge(ctx, n); err != nil {
		return err
	}
	if !r.p.Active {
		n.Blocks = 0
	}
	if m == stopping && max(n.Blocks, r.p.Loops) >= r.d.blocksMax {
		return errors.New("the agent was kept from ending often enough: what waits is left for its next prompt")
	}
	ms, err := r.claim(ctx)
	if err != nil {
		return err
	}
	n.Announced = waiting(n.Announced, ms)
	told := n.Announced
	if m == prompting || m == starting {
		told = nil // a new turn may have forgotten
	}
	text, given, named := r.render(ms, told)
	if text == "" {
		return nil
	}
	reply := r.d.context
	if m == stopping {
		reply = func(_ payload, text string) any { return r.d.block(text) }
	}
	if err := r.write(reply(r.p, text)); err != nil {
		return err
	}
	// Only now: a hook that ends before this leaves the messages where they were.
	n.Given = given
	for _, m := range ms {
		if slices.Contains(given, m.id) {
			n.dropPending(m.callID)
		}
	}
	for _, id := range named {
		if !slices.Contains(n.Announced, id) {
			n.Announced = append(n.Announced, id)
		}
	}
	if m == stopping {
		n.Blocks++
	}
	return nil
}

// claim takes what waits. Those that are not written go back with the lease,
// which ends with the connection.
func (r *runner) claim(ctx context.Context) ([]message, error) {
	var got struct{ Messages []json.RawMessage }
	// One process, one holder: a hook that runs beside this one gets nothing twice.
	if err := r.host.Call(ctx, "inbox/claim", map[string]any{"sessionId": r.session, "holder": id.New()}, &got); err != nil {
		return nil, err
	}
	ms := make([]message, 0, len(got.Messages))
	for _, body := range got.Messages {
		m, err := messageOf(body)
		if err != nil {
			return nil, fmt.Errorf("a message of the host: %w", err)
		}
		ms = append(ms, m)
	}
	return ms, nil
}

// waiting keeps the ids that still wait.
func waiting(ids []string, ms []message) (out []string) {
	for _, m := range ms {
		if slices.Contains(ids, m.id) {
			out = append(out, m.id)
		}
	}
	return out
}

func (r *runner) write(v any) error {
	doc, err := encode(v)
	if err != nil {
		return err
	}
	_, err = r.out.Write(append(doc, '\n'))
	return err
}
