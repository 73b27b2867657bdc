package jsonrpc

import (
	"encoding/json"
	"fmt"
	"time"
)

// ping is a keep-alive call of ours that is not answered yet.
type ping struct {
	id   int64
	sent time.Time
}

// beat calls ping every PingEvery and ends the connection when one stays
// unanswered for PingTimeout. A transport's own pings do not count: a browser
// answers those for a page that is frozen.
func (c *Conn) beat() {
	next := time.NewTimer(c.o.PingEvery)
	defer next.Stop()
	drop := time.NewTimer(c.o.PingTimeout)
	defer drop.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-next.C:
			next.Reset(c.o.PingEvery)
			var id int64
			c.update(func(s *state) {
				s.lastID++
				id = s.lastID
				s.pings = append(s.pings, ping{id: id, sent: time.Now()})
			})
			c.putNow(EncodeCall(IntID(id), methodPing, json.RawMessage("{}")))
			drop.Reset(c.untilDrop())
		case <-drop.C:
			left := c.untilDrop()
			if left <= 0 {
				c.Close(CloseGoingAway, fmt.Sprintf("no answer to ping for %s", c.o.PingTimeout))
				return
			}
			drop.Reset(left)
		}
	}
}

// untilDrop is how long the oldest unanswered ping may still stay so.
func (c *Conn) untilDrop() time.Duration {
	left := c.o.PingTimeout
	c.update(func(s *state) {
		if len(s.pings) > 0 {
			left -= time.Since(s.pings[0].sent)
		}
	})
	return left
}

// pinged takes the response to a ping of ours and reports whether it was one.
// It answers the older ones too: the peer is alive.
func (s *state) pinged(id ID) bool {
	for i, p := range s.pings {
		if id.isNum && p.id == id.num {
			s.pings = append(s.pings[:0], s.pings[i+1:]...)
			return true
		}
	}
	return false
}

// pong answers the peer's ping on the reader, however busy the handlers are.
func (c *Conn) pong(m *Message) {
	empty := true
	_, _ = eachMember(m.Params, func(string, json.RawMessage) error {
		empty = false
		return nil
	})
	if !empty {
		c.putNow(EncodeFault(m.ID, Faultf(CodeInvalidParams, "ping takes {}")))
		return
	}
	c.putNow(EncodeResult(m.ID, json.RawMessage(fmt.Sprintf(`{"time":%d}`, time.Now().UnixMilli()))))
}
