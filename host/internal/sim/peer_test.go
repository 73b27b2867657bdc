package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"meanwhile/host/jsonrpc"
	"meanwhile/shared/event/value"
)

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
