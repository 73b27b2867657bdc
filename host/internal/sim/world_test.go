package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"meanwhile/host/gateway"
	"meanwhile/host/jsonrpc"
	"meanwhile/host/question"
	"meanwhile/host/session"
	"meanwhile/shared/event"
	"meanwhile/shared/event/value"
)

// Limits of a run.
const (
	movesMin, movesMax = 20, 120
	problemsMax        = 8
	sessionsMax        = 5
)

// World is one run.
type World struct {
	seed  uint64
	fault Fault
	dice  *dice
	start time.Time

	// Drawn once.
	maxHold   time.Duration
	carryOnMs int
	steady    bool // no suspend, no clock steps
	solid     bool // the process and the disk do not fail

	models   map[string]*model // by session; under mu
	idle     time.Duration     // after which unused agents close; 0: never in a run
	sessions []string
	pages    []*page
	browsers []*browser
	outside  []*outsider
	lines    int

	mu       sync.Mutex
	host     *host // nil while the process is down
	disk     media
	life     int
	upAt     time.Time
	slept    time.Duration
	step     time.Duration // of the wall clock
	problems []string
	trace    []string
	book     ledger
	detail   bool // the story has every act and item
	clients  int
}

// run is one seed, inside a bubble. It returns what was found wrong.
func run(seed uint64, f Fault, trace bool) (problems, log []string) {
	uuid.SetRand(&lockedReader{r: rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16), byte(seed >> 24), byte(seed >> 32)})})
	defer uuid.SetRand(nil)
	w := &World{seed: seed, fault: f, dice: newDice(seed, 0), start: time.Now(), models: map[string]*model{}, book: newLedger(), detail: trace}
	w.draw()
	w.play()
	w.settle()
	if err := w.disk.Close(); err != nil {
		w.failf("close the disk: %v", err)
	}
	time.Sleep(5 * time.Second) // the store's last goroutine takes its time
	w.mu.Lock()
	defer w.mu.Unlock()
	if !trace && len(w.problems) == 0 {
		return nil, nil
	}
	return w.problems, w.trace
}

// lockedReader is seeded randomness for the ids that the program draws.
type lockedReader struct {
	mu sync.Mutex
	r  *rand.ChaCha8
}

func (l *lockedReader) Read(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.r.Read(b)
}

func (w *World) failf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	if len(w.problems) < problemsMax && !slices.Contains(w.problems, text) {
		w.problems = append(w.problems, text)
	}
	w.trace = append(w.trace, w.at()+"PROBLEM "+text)
}

func (w *World) notef(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trace = append(w.trace, w.at()+fmt.Sprintf(format, args...))
}

func (w *World) at() string { return fmt.Sprintf("%9.3f  ", time.Since(w.start).Seconds()) }

// draw makes the world.
func (w *World) draw() {
	d := w.dice
	w.maxHold = []time.Duration{0, question.DefaultMaxHold, 30 * time.Second}[d.pick(3)]
	w.carryOnMs = []int{0, 0, 10_000}[d.pick(3)]
	w.idle = []time.Duration{0, 0, 10 * time.Second}[d.pick(3)]
	w.steady, w.solid = d.in(2), d.in(3)
	w.disk = newDisk(newDice(w.seed, 1), w.fault)
	real := d.in(4)
	switch w.fault {
	case AckBeforeSync, LostBatch:
		real = false
	case LyingSync, LyingDirSync:
		real = true
	}
	if real {
		shelf, err := openShelf(w, newDice(w.seed, 1), newFiles(newDice(w.seed, 2), w.fault))
		if err != nil {
			w.failf("open an empty store: %v", err)
			return
		}
		w.disk = shelf
	}
	w.boot()
	for i := range 1 + d.pick(2) {
		dir := ""
		if d.in(5) {
			dir = legacyDir
		}
		l, err := w.host.store.Create(context.Background(), event.Header{Title: fmt.Sprint("session ", i), CWD: dir})
		if err != nil {
			w.failf("create a session: %v", err)
			return
		}
		w.sessions = append(w.sessions, l.ID())
		w.setModel(l.ID(), &model{dice: newDice(w.seed, 10+uint64(i))})
	}
	for i := range 1 + d.pick(4) {
		if i == 0 || !d.in(3) {
			w.browsers = append(w.browsers, &browser{items: map[string]string{}})
		}
		w.pages = append(w.pages, newPage(w, i, w.browsers[len(w.browsers)-1]))
	}
	for i := range d.pick(2) {
		w.outside = append(w.outside, newOutsider(w, i))
	}
	for _, id := range w.sessions {
		w.say(id)
	}
}

func (w *World) setModel(id string, m *model) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.models[id] = m
}

// modelOf is a session's model; a fork that nobody knows of any more has one
// that says nothing.
func (w *World) modelOf(id string) *model {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.models[id] == nil {
		w.models[id] = &model{dice: newDice(w.seed, 40), still: true}
	}
	return w.models[id]
}

func (w *World) conn() jsonrpc.Options {
	if w.fault == GhostClients {
		return jsonrpc.Options{PingEvery: -1}
	}
	return jsonrpc.Options{}
}

func (w *World) newID() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clients++
	return fmt.Sprint("id-", w.clients)
}

func (w *World) hostClock() question.Instant {
	w.mu.Lock()
	defer w.mu.Unlock()
	mono := time.Since(w.start) + w.slept
	if w.fault == MonotonicOnly {
		return question.Instant{Wall: mono - w.slept, Mono: mono - w.slept}
	}
	return question.Instant{Wall: mono + w.step, Mono: mono}
}

// dial connects a line to the host, if it is up.
func (w *World) dial(l *line, p gateway.Principal) bool {
	w.mu.Lock()
	h := w.host
	w.mu.Unlock()
	return h != nil && h.accept(l, p)
}

var errDown = errors.New("sim: the host is down")

func (w *World) post(p gateway.Principal, method string, params []byte) (json.RawMessage, error) {
	w.mu.Lock()
	h := w.host
	w.mu.Unlock()
	if h == nil {
		return nil, errDown
	}
	return h.post(p, method, json.RawMessage(params))
}

// boot starts the host's process and checks what it finds on the disk.
func (w *World) boot() {
	h, err := boot(w, w.disk)
	if err != nil {
		if h == nil {
			w.failf("the host does not start: %v", err)
			return
		}
		h.kill()
		w.end(h)
		w.boot()
		return
	}
	w.mu.Lock()
	w.host = h
	w.mu.Unlock()
	w.audit(h, true)
	h.resumeQueued()
	w.notef("host up")
}

// crash is kill -9, a power cut, or the process ending itself after a failed
// write.
func (w *World) crash(why string) {
	w.mu.Lock()
	h := w.host
	w.host = nil
	w.mu.Unlock()
	w.notef("host %s", why)
	h.kill()
	w.end(h)
}

// stop is an orderly end.
func (w *World) stop() {
	w.mu.Lock()
	h := w.host
	w.host = nil
	w.mu.Unlock()
	w.notef("host stops")
	h.close()
	h.kill()
	w.end(nil)
}

// end leaves of the process what is on the disk; h is swept up.
func (w *World) end(h *host) {
	w.life++
	next, err := w.disk.crash(newDice(w.seed, 1000+uint64(w.life)))
	if h != nil {
		h.close()
	}
	if err != nil {
		w.failf("the store does not open after a crash: %v", err)
		next = newDisk(newDice(w.seed, 1), w.fault)
	}
	w.disk = next
	w.upAt = time.Now().Add(w.dice.upTo(15 * time.Second))
	w.book.forgetHints()
}

// tend starts a host whose time has come and sees one that ended itself.
func (w *World) tend() {
	w.mu.Lock()
	h := w.host
	w.mu.Unlock()
	if h == nil {
		if !time.Now().Before(w.upAt) {
			w.boot()
		}
		return
	}
	select {
	case <-h.fatal:
		w.crash("ended itself after a failed write")
	default:
	}
}

// play makes the moves.
func (w *World) play() {
	for range movesMin + w.dice.pick(movesMax-movesMin) {
		time.Sleep(w.pause())
		if w.dice.in(2) {
			synctest.Wait()
		}
		w.tend()
		w.move()
	}
}

// pause is how long until the next move: often one tick from a deadline.
func (w *World) pause() time.Duration {
	d := w.dice
	if !d.in(2) {
		return d.think()
	}
	left := time.Duration(-1)
	if h := w.host; h != nil && d.in(2) {
		for _, id := range w.sessions {
			if a, ok := h.agents.Get(id); ok {
				for _, call := range openCalls(a.Log()) {
					if q, ok := h.quest.Lookup(id, call); ok && (left < 0 || q.Remaining() < left) && q.Remaining() > 0 {
						left = q.Remaining()
					}
				}
			}
		}
	}
	if left < 0 {
		p := w.pages[d.pick(len(w.pages))]
		p.mu.Lock()
		for _, row := range p.look(`{"view":"cards"}`).Get("cards").Items() {
			c := row.Get("countdown")
			if ms, is := c.Get("remainingMs").Int(); is && c.Get("state").Text() == "counting" {
				left = time.Duration(ms) * time.Millisecond
			}
		}
		p.mu.Unlock()
	}
	if left < 0 {
		return d.think()
	}
	return max(0, left+time.Duration(d.pick(3)-1)*time.Millisecond)
}

func openCalls(l *session.Log) (ids []string) {
	l.View(func(s *session.State) {
		for a := range s.Questions.AllActive {
			if a.State == "open" {
				ids = append(ids, a.CallID)
			}
		}
	})
	return ids
}

// move is one thing that happens.
func (w *World) move() {
	d := w.dice
	p := w.pages[d.pick(len(w.pages))]
	id := w.sessions[d.pick(len(w.sessions))]
	switch n := d.pick(100); {
	case n < 60:
		p.live()
		if d.in(5) { // another one at the same instant
			w.pages[d.pick(len(w.pages))].live()
		}
	case n < 68:
		w.network(p)
	case n < 72:
		w.notef("%s reloads", p.name)
		p.reload()
	case n < 80:
		w.say(id)
	case n < 83:
		w.notef("cancel %s", id)
		w.admin("session/cancel", map[string]any{"sessionId": id})
	case n < 86:
		w.admin("session/continue", map[string]any{"sessionId": id})
	case n < 88:
		w.discard(id)
	case n < 92:
		w.process()
	case n < 95:
		w.clocks(p)
	case n < 97:
		p.mu.Lock()
		p.send(fmt.Sprintf(`{"type":%q,"sessionId":%q}`, []string{"follow", "follow", "unfollow"}[d.pick(3)], id))
		p.mu.Unlock()
	case n < 98:
		w.storage(p)
	case n < 99:
		w.lifecycle(id)
	default:
		time.Sleep(d.upTo(time.Minute))
	}
}

func (w *World) network(p *page) {
	d := w.dice
	p.mu.Lock()
	l := p.line
	p.mu.Unlock()
	if l == nil {
		return
	}
	switch d.pick(5) {
	case 0:
		w.notef("%s is cut", p.name)
		l.cut()
	case 1, 2:
		after := d.upTo(90 * time.Second)
		if d.in(3) || w.fault == GhostClients {
			after = 0
		}
		w.notef("%s loses its connection, the host sees it after %v", p.name, after)
		l.drop(after)
	case 3:
		w.notef("%s stalls", p.name)
		l.stall(d.upTo(80 * time.Second))
	case 4:
		p.mu.Lock()
		p.slow = d.upTo(3 * time.Second)
		w.notef("%s reads a frame every %v", p.name, p.slow)
		time.AfterFunc(d.upTo(40*time.Second), func() { p.mu.Lock(); p.slow = 0; p.mu.Unlock() })
		p.mu.Unlock()
	}
}

func (w *World) process() {
	if w.host == nil || w.solid {
		return
	}
	switch w.dice.pick(4) {
	case 0:
		w.crash("is killed")
	case 1:
		w.stop()
	default:
		n := 1 + w.dice.pick(4)
		w.notef("write %d from now will fail", n)
		w.disk.failSoon(n)
	}
}

// clocks steps a wall clock or lets machines sleep.
func (w *World) clocks(p *page) {
	if w.steady {
		return
	}
	d := w.dice
	by := d.upTo(10 * time.Minute)
	switch d.pick(4) {
	case 0:
		w.notef("the host's clock steps by %v", by)
		w.mu.Lock()
		w.step += by - 5*time.Minute
		w.mu.Unlock()
	case 1:
		p.mu.Lock()
		w.notef("the clock of %s steps by %v", p.name, by)
		p.wall += by - 5*time.Minute
		p.mu.Unlock()
	case 2: // a laptop with the host and a page on it
		w.notef("the host and %s sleep for %v", p.name, by)
		w.mu.Lock()
		w.slept += by
		w.mu.Unlock()
		p.mu.Lock()
		p.wall += by
		if d.in(2) { // not every browser's monotonic clock stands still
			p.mono += by
		}
		p.mu.Unlock()
	case 3:
		w.notef("%s sleeps for %v", p.name, by)
		p.mu.Lock()
		p.wall += by
		if d.in(2) {
			p.mono += by
		}
		if p.line != nil && d.in(2) {
			p.line.cut()
		}
		p.mu.Unlock()
	}
}

// lifecycle forks, renames, archives or deletes a session.
func (w *World) lifecycle(id string) {
	d := w.dice
	if w.host == nil {
		return
	}
	params := map[string]any{"sessionId": id}
	switch d.pick(4) {
	case 0:
		if len(w.sessions) >= sessionsMax {
			return
		}
		out, err := w.admin("session/fork", params)
		if err != nil {
			return
		}
		fork := out.Get("sessionId").Text()
		w.notef("%s is forked as %s", id, fork)
		w.sessions = append(w.sessions, fork)
		w.setModel(fork, &model{dice: newDice(w.seed, 30+uint64(len(w.sessions)))})
		w.say(fork)
	case 1:
		params["title"] = fmt.Sprint("title ", d.pick(100))
		w.admin("session/rename", params)
	case 2:
		params["archived"] = d.in(2)
		w.admin("session/archive", params)
	case 3:
		if len(w.sessions) < 2 || w.isOutside(id) {
			return
		}
		w.notef("delete %s", id)
		w.book.deleting(id)
		w.sessions = slices.DeleteFunc(w.sessions, func(s string) bool { return s == id })
		if _, err := w.admin("session/delete", params); err != nil {
			w.notef("delete: %v", err)
		}
	}
}

// storage fills or frees a browser's storage.
func (w *World) storage(p *page) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.browser.mu.Lock()
	p.browser.failing = !p.browser.failing
	failing := p.browser.failing
	p.browser.mu.Unlock()
	w.notef("storage of %s fails: %v", p.name, failing)
}

var adminPrincipal = gateway.Principal{TokenID: "admin", Label: "admin", Scopes: gateway.Scopes{"read", "answer", "admin"}}

func (w *World) admin(method string, params any) (value.Value, error) {
	raw, err := jsonrpc.Encode(params)
	if err != nil {
		return value.Value{}, err
	}
	out, err := w.post(adminPrincipal, method, raw)
	if err != nil {
		return value.Value{}, err
	}
	return value.Parse(out)
}

// say sends a prompt.
func (w *World) say(id string) {
	msg := fmt.Sprint("prompt-", w.newID())
	w.notef("send %s to %s", msg, id)
	if _, err := w.admin("session/send", map[string]any{"sessionId": id, "text": "go on", "messageId": msg}); err == nil {
		w.book.promised(id, msg, "", "")
	}
}

// discard takes a waiting message out.
func (w *World) discard(id string) {
	h := w.host
	if h == nil {
		return
	}
	row, _ := h.store.Row(id)
	if len(row.Queued) == 0 {
		return
	}
	msg := row.Queued[w.dice.pick(len(row.Queued))].ID
	w.removing(msg)
	w.notef("discard %s", msg)
	if _, err := w.admin("inbox/remove", map[string]any{"sessionId": id, "messageId": msg}); err != nil {
		w.notef("discard: %v", err)
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// sessionOf and callOf read a card's key.
func sessionOf(key string) string { return strings.SplitN(key, ":", 3)[1] }
func callOf(key string) string    { return strings.SplitN(key, ":", 3)[2] }
