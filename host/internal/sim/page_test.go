package sim

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"meanwhile/host/gateway"
	"meanwhile/host/jsonrpc"
	"meanwhile/shared/deadline/countdown"
	"meanwhile/shared/event/value"
	"meanwhile/wasm/client/machine"
)

// The page's own times, as in web/src/rpc/link.ts.
const (
	pingEvery    = 20 * time.Second
	silenceMax   = 60 * time.Second
	connectMax   = 15 * time.Second
	backoffFirst = 500 * time.Millisecond
	backoffMax   = 30 * time.Second
)

// browser is the storage that its tabs share.
type browser struct {
	mu      sync.Mutex
	items   map[string]string
	failing bool
	tabs    []*page
}

// page is one tab: the real machine, driven as web/src/store/driver.ts and
// web/src/rpc drive it. Everything that enters holds the lock, as everything
// in a page runs on one thread.
type page struct {
	w       *World
	i       int
	name    string
	tab     string
	browser *browser
	dice    *dice

	mail struct {
		sync.Mutex
		letters []string // storage events
		reading bool
	}

	mu          sync.Mutex
	m           *machine.Machine
	loads       int
	closed      bool
	queue       []string
	running     bool
	later       []func() // answers leave after the calls of their step
	timer       *time.Timer
	armed       int // tells a timer's turn from an older one's
	mono, wall  time.Duration
	storeFailed bool

	line     *line
	lines    uint64 // so far
	conn     int    // tells a connection's frames from an older one's
	online   bool
	attempt  int
	retry    *time.Timer
	pinger   *time.Timer
	deadline *time.Timer
	slow     time.Duration // between two frames that are read
	nextID   int64
	ours     map[jsonrpc.ID]*sent
	byCall   map[string]jsonrpc.ID // the machine's calls on this connection
	posts    map[string]bool
	theirs   map[string]*incoming // requests, by the id given to the machine
	byWire   map[jsonrpc.ID]string
	requests int
	events   map[string]string // card keys by event id

	typed map[string]string // what the person left in each card, as text
}

func newPage(w *World, i int, b *browser) *page {
	p := &page{w: w, i: i, name: fmt.Sprint("client ", i), tab: fmt.Sprint("tab", i), browser: b,
		dice: newDice(w.seed, 100+uint64(i)), typed: map[string]string{}, events: map[string]string{}}
	b.tabs = append(b.tabs, p)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.load()
	return p
}

func (p *page) principal() gateway.Principal {
	return gateway.Principal{TokenID: "token " + p.name, Label: p.name, Scopes: gateway.Scopes{"read", "answer", "admin"}}
}

func (p *page) now() countdown.Stamp {
	t := time.Since(p.w.start)
	return countdown.Stamp{Wall: p.w.start.Add(t + p.wall).UnixMilli(), Mono: (t + p.mono).Milliseconds()}
}

// load starts the page anew, on what its storage holds.
func (p *page) load() {
	p.loads++
	p.m, p.queue, p.later = &machine.Machine{}, nil, nil
	p.posts, p.storeFailed = map[string]bool{}, false
	stopTimer(p.timer)
	p.forget()
	p.browser.mu.Lock()
	members := make([]value.Member, 0, len(p.browser.items))
	for _, k := range sortedKeys(p.browser.items) {
		members = append(members, value.Member{Name: k, Value: value.OfString(p.browser.items[k])})
	}
	p.browser.mu.Unlock()
	if p.w.fault == ForgetfulStorage {
		members = nil
	}
	p.send(fmt.Sprintf(`{"type":"init","tab":%q,"nonce":"%s-%032d","stored":%s,"settings":{"carryOnMs":%d,"notify":true}}`,
		p.tab, p.tab, p.loads, value.OfObject(members...).Bytes(), p.w.carryOnMs))
	p.connect()
}

// reload is the person reloading the page.
func (p *page) reload() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.browser.mu.Lock()
	failing := p.browser.failing
	p.browser.mu.Unlock()
	if failing || p.storeFailed {
		clear(p.typed) // it was in the page alone, and the page said so
	}
	p.hangUp()
	p.load()
}

// close ends the tab.
func (p *page) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hangUp()
	p.closed = true
	stopTimer(p.timer)
	p.forget()
}

// hangUp closes the socket from this side.
func (p *page) hangUp() {
	if p.line != nil {
		_ = clientEnd{p.line}.Close(1000, "")
	}
}

// forget drops the connection and all that was under way on it.
func (p *page) forget() {
	p.conn++
	p.line, p.online = nil, false
	stopTimer(p.retry)
	stopTimer(p.pinger)
	stopTimer(p.deadline)
	p.ours, p.byCall = map[jsonrpc.ID]*sent{}, map[string]jsonrpc.ID{}
	p.theirs, p.byWire = map[string]*incoming{}, map[jsonrpc.ID]string{}
}

func stopTimer(t *time.Timer) {
	if t != nil {
		t.Stop()
	}
}

// after runs f under the lock while this connection lasts.
func (p *page) after(d time.Duration, f func()) *time.Timer {
	conn, load := p.conn, p.loads
	return time.AfterFunc(d, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.conn == conn && p.loads == load && !p.closed {
			f()
		}
	})
}

// send gives the machine one input; one that comes up meanwhile waits.
func (p *page) send(input string) {
	p.queue = append(p.queue, input)
	if p.running {
		return
	}
	p.running = true
	for len(p.queue) > 0 && !p.closed {
		next := p.queue[0]
		p.queue = p.queue[1:]
		p.step(next)
	}
	p.running = false
}

func (p *page) step(input string) {
	out, refused := p.m.Step(p.now(), []byte(input))
	if refused != nil {
		p.w.failf("%s refused %s: %v", p.name, input, refused)
		return
	}
	doc, err := value.Parse(out)
	if err != nil {
		p.w.failf("%s: step document: %v", p.name, err)
		return
	}
	for _, e := range doc.Get("effects").Items() {
		p.do(e)
	}
	later := p.later
	p.later = nil
	for _, f := range later {
		f()
	}
	p.armed++
	stopTimer(p.timer)
	if next, is := doc.Get("next").Int(); is {
		armed := p.armed
		p.timer = time.AfterFunc(time.Duration(max(0, next-p.now().Mono))*time.Millisecond, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.armed == armed && !p.closed {
				p.send(`{"type":"tick"}`)
			}
		})
	}
	p.watchDrafts(input)
}

func (p *page) do(e value.Value) {
	id := e.Get("id").Text()
	switch e.Get("do").Text() {
	case "call", "stream":
		p.doCall(e, id)
	case "abort":
		delete(p.posts, id)
		if wire, ok := p.byCall[id]; ok {
			delete(p.byCall, id)
			// The response may still come, and is dropped then.
			p.ours[wire] = &sent{done: func(value.Value, *jsonrpc.Error) {}}
			n, _ := strconv.ParseInt(wire.String(), 10, 64)
			p.write(jsonrpc.EncodeNotice("$/cancelRequest", []byte(fmt.Sprintf(`{"id":%d}`, n))))
		}
	case "respond":
		p.respond(e, id)
	case "store":
		p.store(e.Get("key").Text(), ptr(e.Get("value").Text()))
	case "remove":
		p.store(e.Get("key").Text(), nil)
	}
}

func ptr[T any](v T) *T { return &v }

func (p *page) doCall(e value.Value, id string) {
	method, params := e.Get("method").Text(), e.Get("params")
	switch method {
	case "userQuestions/answer":
		p.w.left(p, "c:"+params.Get("sessionId").Text()+":"+params.Get("callId").Text(), params.Get("answer").Get("answers"))
	case "inbox/remove":
		p.w.removing(params.Get("messageId").Text())
	case "remote/settle":
		if a := params.Get("result"); a.Kind() == value.Object {
			p.w.leftAnywhere(p, a.Get("answers"))
		}
	}
	done := func(r value.Value, err *jsonrpc.Error) {
		if err != nil {
			p.send(fmt.Sprintf(`{"type":"error","id":%q,"error":%s}`, id, errorBody(err)))
			return
		}
		if method == "userQuestions/answer" {
			if r.Get("accepted").True() {
				p.w.accepted(params, r)
			} else {
				p.w.denied(params)
			}
		}
		p.send(fmt.Sprintf(`{"type":"result","id":%q,"result":%s}`, id, r.Bytes()))
	}
	if e.Get("post").True() {
		p.post(id, method, params, done)
		return
	}
	if !p.online {
		return // "down" is on its way, and ends this call with all the others
	}
	var item func(value.Value)
	if e.Get("do").Text() == "stream" {
		item = func(v value.Value) {
			if _, mine := p.byCall[id]; mine && !(p.w.fault == LostItems && method == "host/follow" && p.dice.in(3)) {
				p.send(fmt.Sprintf(`{"type":"item","id":%q,"value":%s}`, id, v.Bytes()))
			}
		}
	}
	p.byCall[id] = p.call(method, string(params.Bytes()), item, func(r value.Value, err *jsonrpc.Error) {
		if _, mine := p.byCall[id]; mine {
			delete(p.byCall, id)
			done(r, err)
		}
	})
}

// post makes a call over POST, which needs no socket but a network.
func (p *page) post(id, method string, params value.Value, done func(value.Value, *jsonrpc.Error)) {
	p.posts[id] = true
	load := p.loads
	delay, lose := p.dice.upTo(200*time.Millisecond), p.dice.in(4)
	go func() {
		time.Sleep(delay)
		raw, err := p.w.post(p.principal(), method, params.Bytes())
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.closed || p.loads != load || !p.posts[id] {
			return
		}
		delete(p.posts, id)
		var refused *jsonrpc.Error
		switch {
		case errors.As(err, &refused):
			done(value.Value{}, refused)
		case err != nil || lose: // the host is down, or the response got lost
			done(value.Value{}, &jsonrpc.Error{Code: -32001, Message: "network"})
		default:
			r, _ := value.Parse(orNull(raw))
			done(r, nil)
		}
	}()
}

func (p *page) respond(e value.Value, id string) {
	in := p.theirs[id]
	if in == nil {
		return
	}
	delete(p.theirs, id)
	delete(p.byWire, in.wire)
	var frame []byte
	if r := e.Get("result"); r.Kind() == value.Object {
		p.w.left(p, in.card, r.Get("answers"))
		frame = jsonrpc.EncodeResult(in.wire, r.Bytes())
	} else {
		x := e.Get("error")
		frame = jsonrpc.EncodeFault(in.wire, &jsonrpc.Fault{Code: jsonrpc.CodeApplication, Message: x.Get("message").Text(), Data: x.Get("data").Bytes()})
	}
	p.later = append(p.later, func() { p.write(frame) })
}

// store writes one item and tells the other tabs.
func (p *page) store(key string, text *string) {
	b := p.browser
	if p.w.detail {
		p.w.notef("%s stores %s: %s", p.name, key, *cmp.Or(text, ptr("nothing")))
	}
	b.mu.Lock()
	failed := b.failing
	if !failed {
		if text == nil {
			delete(b.items, key)
		} else {
			b.items[key] = *text
		}
	}
	tabs := b.tabs
	b.mu.Unlock()
	if failed != p.storeFailed {
		p.storeFailed = failed
		p.send(fmt.Sprintf(`{"type":"storage","failed":%v}`, failed))
	}
	if failed {
		return
	}
	doc := "null"
	if text != nil {
		doc = string(value.AppendString(nil, *text))
	}
	for _, t := range tabs {
		if t != p {
			t.deliver(fmt.Sprintf(`{"type":"stored","key":%q,"value":%s}`, key, doc))
		}
	}
}

// deliver brings a storage event to a tab, in order and on that tab's thread.
func (p *page) deliver(letter string) {
	p.mail.Lock()
	defer p.mail.Unlock()
	p.mail.letters = append(p.mail.letters, letter)
	if p.mail.reading {
		return
	}
	p.mail.reading = true
	go func() {
		for {
			p.mail.Lock()
			if len(p.mail.letters) == 0 {
				p.mail.reading = false
				p.mail.Unlock()
				return
			}
			next := p.mail.letters[0]
			p.mail.letters = p.mail.letters[1:]
			p.mail.Unlock()
			p.mu.Lock()
			if !p.closed {
				p.send(next)
			}
			p.mu.Unlock()
		}
	}()
}

// look draws a view.
func (p *page) look(request string) value.Value {
	out, refused := p.m.View(p.now(), []byte(request))
	if refused != nil {
		p.w.failf("%s: view %s: %v", p.name, request, refused)
		return value.Value{}
	}
	v, err := value.Parse(out)
	if err != nil {
		p.w.failf("%s: view %s: %v", p.name, request, err)
	}
	return v
}

func (p *page) card(key string) value.Value {
	return p.look(fmt.Sprintf(`{"view":"card","key":%q}`, key))
}
