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
	"time"

	"github.com/google/uuid"

	"meanwhile/host/gateway"
	"meanwhile/host/jsonrpc"
	"meanwhile/host/question"
	"meanwhile/shared/event"
	"meanwhile/shared/event/value"
)

// Limits of a run.
const (
	movesMin, movesMax = 20, 150
	problemsMax        = 8
	sessionsMax        = 5
)

// World is one run.
type World struct {
	seed  uint64
	fault Fault
	dice  *dice
	start time.Time

	jitter *dice

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
	w := &World{seed: seed, fault: f, dice: newDice(seed, 0), jitter: newDice(seed, 3), start: time.Now(), models: map[string]*model{}, book: newLedger(), detail: trace}
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
