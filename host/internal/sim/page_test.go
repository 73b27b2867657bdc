package sim

import (
	"cmp"
	"context"
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

// sent is one call of ours.
type sent struct {
	done   func(result value.Value, err *jsonrpc.Error)
	item   func(value.Value)
	chunks string
}

// incoming is one call of the host's.
type incoming struct {
	wire jsonrpc.ID
	card string // key of the card that it makes
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

func (p *page) connect() {
	p.forget()
	p.lines++
	l := newLine(p.w.seed, 1<<32+uint64(p.i)<<24+p.lines<<1)
	if !p.w.dial(l, p.principal()) {
		p.lost()
		return
	}
	p.line = l
	p.deadline = p.after(connectMax, p.lost)
	go p.read(l, p.conn)
	p.call("initialize", `{"protocol":1,"client":{"name":"page","version":"1"}}`, nil, func(r value.Value, err *jsonrpc.Error) {
		if err != nil {
			p.lost()
			return
		}
		p.online, p.attempt = true, 0
		p.prove()
		p.pinger = p.after(pingEvery, p.ping)
		p.send(fmt.Sprintf(`{"type":"up","clientId":%q,"scopes":%s,"protocol":1,"sha256":"sim","build":{"sha256":"sim","reload":true}}`,
			r.Get("clientId").Text(), r.Get("scopes").Bytes()))
	})
}

func (p *page) prove() {
	stopTimer(p.deadline)
	p.deadline = p.after(silenceMax, p.lost)
}

func (p *page) ping() {
	p.pinger = p.after(pingEvery, p.ping)
	p.call("ping", `{}`, nil, func(_ value.Value, err *jsonrpc.Error) {
		if err == nil {
			p.prove()
		}
	})
}

// lost is the connection gone, as far as the page knows.
func (p *page) lost() {
	was := p.online
	p.hangUp()
	p.forget()
	ceiling := min(backoffMax, backoffFirst<<min(p.attempt, 10))
	p.attempt++
	p.retry = p.after(ceiling/2+p.dice.upTo(ceiling/2), p.connect)
	if was {
		p.send(`{"type":"down"}`)
	}
}

// read takes frames until the connection is gone.
func (p *page) read(l *line, conn int) {
	for {
		frame, err := l.down.pop()
		p.mu.Lock()
		if p.conn != conn || p.closed {
			p.mu.Unlock()
			return
		}
		if err == nil {
			err = p.receive(frame)
		}
		if err != nil {
			if errors.Is(err, errBroken) {
				p.w.failf("%s: %v", p.name, err)
			}
			p.lost()
			p.mu.Unlock()
			return
		}
		slow := p.slow
		p.mu.Unlock()
		if slow > 0 {
			time.Sleep(slow)
		}
	}
}

var errBroken = errors.New("the host broke the protocol")

// receive takes one frame, wholly, before the next one.
func (p *page) receive(frame []byte) error {
	m, err := jsonrpc.ParseMessage(frame)
	if err != nil {
		return fmt.Errorf("%w: %v", errBroken, err)
	}
	switch {
	case m.Method == "ping":
		p.write(jsonrpc.EncodeResult(m.ID, []byte(`{"time":0}`)))
	case m.Method != "" && !m.ID.IsZero():
		p.requested(m)
	case m.Method == "$/progress":
		return p.progress(m)
	case m.Method == "$/cancelRequest":
		p.cancelled(m)
	case m.Method != "":
		if v, err := value.Parse(orNull(m.Params)); err == nil && m.Method == "remote/settled" && v.Get("kind").Text() == "result" {
			if key := p.events[v.Get("eventId").Text()]; key != "" {
				p.w.book.settled(key)
			}
		}
		p.send(fmt.Sprintf(`{"type":"notify","method":%q,"params":%s}`, m.Method, m.Params))
	default:
		s := p.ours[m.ID]
		if s == nil {
			return nil // late, not wrong
		}
		delete(p.ours, m.ID)
		result, err := value.Parse(orNull(m.Result))
		if err != nil {
			return fmt.Errorf("%w: %v", errBroken, err)
		}
		s.done(result, m.Error)
	}
	return nil
}

func orNull(b []byte) []byte {
	if b == nil {
		return []byte("null")
	}
	return b
}

func (p *page) requested(m *jsonrpc.Message) {
	p.requests++
	id := fmt.Sprintf("c%dr%d", p.conn, p.requests)
	params, err := value.Parse(m.Params)
	if err != nil {
		return
	}
	key := "c:" + params.Get("sessionId").Text() + ":" + params.Get("request").Get("wait").Get("callId").Text()
	if key[len(key)-1] == ':' {
		key = "e:" + params.Get("sessionId").Text() + ":" + params.Get("eventId").Text()
	}
	p.events[params.Get("eventId").Text()] = key
	p.theirs[id], p.byWire[m.ID] = &incoming{m.ID, key}, id
	p.send(fmt.Sprintf(`{"type":"request","id":%q,"method":%q,"params":%s}`, id, m.Method, m.Params))
}

func (p *page) progress(m *jsonrpc.Message) error {
	params, err := value.Parse(m.Params)
	if err != nil {
		return fmt.Errorf("%w: %v", errBroken, err)
	}
	token, _ := params.Get("token").Int()
	s := p.ours[jsonrpc.IntID(token)]
	if s == nil || s.item == nil {
		return nil
	}
	v := params.Get("value")
	if chunk, is := v.Get("chunk").Str(); is && len(v.Members()) == 2 && v.Get("more").Kind() == value.Bool {
		s.chunks += chunk
		if v.Get("more").True() {
			return nil
		}
		if v, err = value.ParseString(s.chunks); err != nil {
			return fmt.Errorf("%w: %v", errBroken, err)
		}
		s.chunks = ""
	}
	s.item(v)
	return nil
}

func (p *page) cancelled(m *jsonrpc.Message) {
	params, err := value.Parse(m.Params)
	if err != nil {
		return
	}
	wire := jsonrpc.StringID(params.Get("id").Text())
	if n, is := params.Get("id").Int(); is {
		wire = jsonrpc.IntID(n)
	}
	id, ok := p.byWire[wire]
	if !ok || p.theirs[id] == nil {
		return
	}
	delete(p.theirs, id)
	p.write(jsonrpc.EncodeFault(wire, jsonrpc.Faultf(jsonrpc.CodeCancelled, "cancelled")))
	p.send(fmt.Sprintf(`{"type":"cancel","id":%q}`, id))
}

// write sends a frame; a socket that is gone takes it and says nothing.
func (p *page) write(frame []byte) {
	if p.line != nil {
		_ = p.line.up.push(context.Background(), frame, 0)
	}
}

func (p *page) call(method, params string, item func(value.Value), done func(value.Value, *jsonrpc.Error)) jsonrpc.ID {
	p.nextID++
	id := jsonrpc.IntID(p.nextID)
	p.ours[id] = &sent{done: done, item: item}
	p.write(jsonrpc.EncodeCall(id, method, []byte(params)))
	return id
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

func errorBody(e *jsonrpc.Error) []byte {
	var w value.Writer
	w.Begin()
	w.IntField("code", int64(e.Code))
	w.StrField("message", e.Message)
	if e.Data != nil {
		w.Name("data")
		w.Raw(e.Data)
	}
	w.End()
	return w.Bytes()
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
