package machine

import (
	"strconv"

	"meanwhile/shared/deadline/countdown"
	"meanwhile/shared/event/value"
	"meanwhile/wasm/client/card"
)

// Limits, and waits in ms.
const (
	CardsMax    = 1000
	FollowsMax  = 8
	SessionsMax = 5000
	StoredMax   = 200
	AnsweredMax = 50
	ownIDsMax   = 8 // client ids of earlier connections
	tombsMax    = 256
	looksMax    = 8 // records looked up at once for stored drafts whose asks are gone

	arrivalEvery = 3000
	retryMin     = 1000
	retryMax     = 30_000
	orphanAfter  = 10 * 60_000          // a draft of another tab whose ask is gone is shown
	pruneAfter   = 7 * 24 * 3600 * 1000 // and removed
	protocol     = 1
)

// Error refuses an input; nothing was changed.
type Error struct{ Code, Message string }

func (e *Error) Error() string { return e.Code + ": " + e.Message }

func badInput(msg string) *Error { return &Error{"BAD_INPUT", msg} }

// Machine is the one machine behind the exports. The zero value waits for init.
type Machine struct {
	now   countdown.Stamp
	ready bool

	tab, nonce string
	serial     int64 // of calls and streams
	presses    int64 // of submission ids
	carryOn    int64
	notify     bool

	conn          string // "down", "up", "stopped"
	stop          int64
	own           []string // our client ids, newest last
	read, answer  bool     // scopes
	known, synced bool     // the list, and all deliveries, of this connection have come
	otherBuild    bool
	reloading     bool

	visible  bool
	focusKey string // the card whose surface has the focus
	memory   bool   // storage does not work

	cards    []*card.Card
	byKey    map[string]*card.Card
	orphans  map[string]string // ended cards made from a stored item: card key → item
	answered []*card.Card      // gone, newest last
	tombs    []string          // keys that ended with a result: a list that lags does not bring them back
	over     int64             // asks without a card
	notified map[string]bool

	deliveries map[string]*card.Card
	calls      map[string]call
	sessions   []*session
	byID       map[string]*session
	list       stream

	items []item // storage

	arrivals  int64
	arrivalAt int64 // mono before which no further arrival is told

	fx    value.Writer
	dirty []string
}

// call is one of our calls or streams under way.
type call struct {
	kind    callKind
	key     string // card or session
	session string
	post    bool
}

type callKind uint8

const (
	callList callKind = iota
	callFollow
	callClaim
	callAnswer
	callSettle
	callLook
	callRemove
)

// stream is one that is kept open while the connection is up.
type stream struct {
	id      string
	retryAt int64 // mono; 0: none
	wait    int64
}

// failed notes the end of the stream and when to open it again.
func (s *stream) failed(now countdown.Stamp) {
	s.id = ""
	s.wait = min(max(2*s.wait, retryMin), retryMax)
	s.retryAt = now.Mono + s.wait
}

// Step takes one input document and gives the step document.
func (m *Machine) Step(now countdown.Stamp, input []byte) ([]byte, *Error) {
	in, err := value.Parse(input)
	if err != nil {
		return nil, badInput(err.Error())
	}
	typ := in.Get("type").Text()
	if m.ready == (typ == "init") {
		return nil, badInput("init comes first and once")
	}
	if problem := m.refuses(typ, in); problem != nil {
		return nil, problem
	}
	m.now = now
	m.fx, m.dirty = value.Writer{}, nil
	m.fx.Begin()
	m.fx.Name("effects")
	m.fx.BeginArray()
	m.tick()
	m.handle(typ, in)
	m.sweep()
	m.arrive()
	m.reload()
	m.fx.EndArray()
	for _, c := range m.cards {
		if c.Dirty {
			c.Dirty = false
			m.mark("cards")
			m.mark("card:" + c.Key)
		}
	}
	m.fx.Name("dirty")
	m.fx.BeginArray()
	for _, d := range m.dirty {
		m.fx.Str(d)
	}
	m.fx.EndArray()
	if next := m.Next(); next > 0 {
		m.fx.IntField("next", next)
	}
	m.fx.End()
	return m.fx.Bytes(), nil
}

// refuses checks what an input must have, before anything changes.
func (m *Machine) refuses(typ string, in value.Value) *Error {
	need := func(names ...string) *Error {
		for _, n := range names {
			if s, ok := in.Get(n).Str(); !ok || s == "" {
				return badInput(typ + ": " + n + " must be a string that is not empty")
			}
		}
		return nil
	}
	switch typ {
	case "init":
		return need("tab", "nonce")
	case "request", "cancel", "result", "error", "item":
		return need("id")
	case "notify":
		return need("method")
	case "follow", "unfollow":
		return need("sessionId")
	case "fold":
		return need("sessionId", "key")
	case "stored":
		return need("key")
	case "act":
		return need("key", "act")
	case "up":
		return need("clientId")
	case "settings", "down", "stopped", "window", "storage", "tick":
		return nil
	}
	return badInput("unknown input type " + strconv.Quote(typ))
}

func (m *Machine) handle(typ string, in value.Value) {
	switch typ {
	case "init":
		m.init(in)
	case "settings":
		m.settings(in)
	case "up":
		m.up(in)
	case "down":
		m.down("down", 0)
	case "stopped":
		code, _ := in.Get("code").Int()
		m.down("stopped", code)
	case "request":
		m.request(in.Get("id").Text(), in.Get("method").Text(), in.Get("params"))
	case "cancel":
		if id := in.Get("id").Text(); m.deliveries[id] != nil {
			c := m.deliveries[id]
			delete(m.deliveries, id)
			if c.Delivery == id {
				c.CancelDelivery(m.now, m)
				m.project(c)
			}
		}
	case "notify":
		switch in.Get("method").Text() {
		case "remote/settled":
			m.settled(in.Get("params"))
		case "remote/synced":
			m.allCame(in.Get("params"))
		}
	case "result":
		m.result(in.Get("id").Text(), in.Get("result"))
	case "error":
		m.failed(in.Get("id").Text(), in.Get("error"))
	case "item":
		m.item(in.Get("id").Text(), in.Get("value"))
	case "follow":
		m.follow(in.Get("sessionId").Text())
	case "unfollow":
		m.unfollow(in.Get("sessionId").Text())
	case "fold":
		if s := m.byID[in.Get("sessionId").Text()]; s != nil && s.log != nil {
			s.log.Open(in.Get("key").Text(), in.Get("open").True())
			m.mark("transcript:" + s.id)
		}
	case "window":
		m.window(in.Get("visible").True())
	case "stored":
		m.storedElsewhere(in.Get("key").Text(), in.Get("value"))
	case "storage":
		m.storageFailed(in.Get("failed").True())
	case "act":
		m.act(in)
	}
}

func (m *Machine) init(in value.Value) {
	m.ready, m.conn = true, "down"
	m.tab, m.nonce = in.Get("tab").Text(), in.Get("nonce").Text()
	m.memory = in.Get("storage").Text() == "memory"
	m.visible = in.Get("visible").Kind() != value.Bool || in.Get("visible").True()
	m.byKey, m.byID = map[string]*card.Card{}, map[string]*session{}
	m.deliveries, m.calls = map[string]*card.Card{}, map[string]call{}
	m.orphans, m.notified = map[string]string{}, map[string]bool{}
	m.settings(in.Get("settings"))
	for _, e := range in.Get("stored").Members() {
		m.keep(e.Name, e.Value.Text(), nil)
	}
	m.mark("cards")
	m.mark("sessions")
}

func (m *Machine) settings(in value.Value) {
	m.carryOn, _ = in.Get("carryOnMs").Int()
	m.notify = in.Get("notify").True()
	for _, c := range m.cards {
		c.Count.CarryOn(m.now, m.carryOn)
	}
}

func (m *Machine) up(in value.Value) {
	if m.conn == "up" { // the page missed to say so
		m.down("down", 0)
	}
	if n, ok := in.Get("protocol").Int(); ok && n != protocol {
		m.down("stopped", 4400)
		return
	}
	m.conn, m.stop, m.known, m.synced = "up", 0, false, false
	m.own = append(m.own, in.Get("clientId").Text())
	if len(m.own) > ownIDsMax {
		m.own = m.own[1:]
	}
	m.read, m.answer = false, false
	for _, s := range in.Get("scopes").Items() {
		m.read = m.read || s.Text() == "read"
		m.answer = m.answer || s.Text() == "answer"
	}
	build := in.Get("build")
	m.otherBuild = build.Get("reload").True() && in.Get("sha256").Text() != build.Get("sha256").Text()
	for _, c := range m.cards {
		c.UpAgain(m)
	}
	m.list = stream{}
	m.openList()
	for _, s := range m.sessions {
		s.stream = stream{}
		m.openFollow(s)
	}
	m.mark("cards")
	m.mark("sessions")
}

func (m *Machine) down(conn string, code int64) {
	if m.conn == "up" {
		m.announce("offline", "", 0)
	}
	m.conn, m.stop, m.known, m.synced = conn, code, false, false
	m.deliveries = map[string]*card.Card{}
	for id, c := range m.calls {
		if !c.post {
			delete(m.calls, id)
		}
	}
	m.list = stream{}
	for _, s := range m.sessions {
		s.down()
		if s.follow {
			m.mark("transcript:" + s.id)
		}
	}
	for _, c := range m.cards {
		if c.Call != "" {
			if _, still := m.calls[c.Call]; !still {
				c.Call = ""
			}
		}
		c.Down(m.now, m)
	}
	m.mark("cards")
	m.mark("sessions")
}

func (m *Machine) window(visible bool) {
	m.visible = visible
	if c := m.byKey[m.focusKey]; c != nil {
		if visible {
			c.Focus(m.now)
		} else {
			c.Blur(m.now)
		}
	}
}

func (m *Machine) tick() {
	if !m.ready {
		return
	}
	for _, c := range m.cards {
		c.Tick(m.now, m, func(code string, ms int64) {
			if code != "reminder" {
				m.announce(code, c.Key, ms)
			} else if m.notify && !m.visible {
				m.notice(c, "reminder")
			}
		})
	}
	due := func(s *stream) bool {
		if s.retryAt == 0 || m.now.Mono < s.retryAt {
			return false
		}
		s.retryAt = 0
		return true
	}
	if due(&m.list) {
		m.openList()
	}
	for _, s := range m.sessions {
		if due(&s.stream) {
			m.openFollow(s)
		}
	}
}

// Next is the mono time at which the machine wants a tick, 0 when it wants none.
func (m *Machine) Next() int64 {
	next := int64(0)
	at := func(mono int64) {
		if mono > 0 && (next == 0 || mono < next) {
			next = mono
		}
	}
	for _, c := range m.cards {
		at(c.Next(m.now))
	}
	at(m.list.retryAt)
	for _, s := range m.sessions {
		at(s.stream.retryAt)
	}
	if m.arrivals > 0 {
		at(m.arrivalAt)
	}
	return next
}

// arrive tells of new asks, at most once in arrivalEvery.
func (m *Machine) arrive() {
	if m.arrivals > 0 && m.now.Mono >= m.arrivalAt {
		m.announce("arrived", "", m.arrivals)
		m.arrivals, m.arrivalAt = 0, m.now.Mono+arrivalEvery
	}
}

// reload asks for the host's build once a reload loses nothing.
func (m *Machine) reload() {
	if !m.otherBuild || m.reloading {
		return
	}
	for _, c := range m.cards {
		if c.InFlight() || c.Edited() && (c.Ended == nil || m.memory) {
			return
		}
	}
	m.reloading = true
	m.do("reload")
	m.fx.End()
}
