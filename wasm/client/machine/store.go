package machine

import (
	"strings"

	"meanwhile/shared/event/value"
	"meanwhile/wasm/client/card"
	"meanwhile/wasm/client/draft"
)

// itemPrefix opens the key of every stored draft: mw/draft/CARD/TAB.
const itemPrefix = "mw/draft/"

// item is one stored draft, of this tab or another.
type item struct {
	key, card, tab string
	text           string
	rec            draft.Record
	ok             bool // this version wrote it
}

// keep notes what storage holds under a key; rec is what the text says, nil to
// read it.
func (m *Machine) keep(key, text string, rec *draft.Record) {
	rest, ours := strings.CutPrefix(key, itemPrefix)
	slash := strings.LastIndexByte(rest, '/')
	if !ours || slash < 0 {
		return
	}
	it := item{key: key, card: rest[:slash], tab: rest[slash+1:], text: text}
	if rec == nil {
		it.rec, it.ok = draft.Decode(text)
	} else {
		it.rec, it.ok = *rec, true
	}
	for i := range m.items {
		if m.items[i].key == key {
			m.items[i] = it
			return
		}
	}
	m.items = append(m.items, it)
}

func (m *Machine) forget(key string) bool {
	for i := range m.items {
		if m.items[i].key == key {
			m.items = append(m.items[:i], m.items[i+1:]...)
			return true
		}
	}
	return false
}

func (m *Machine) store(key string, r draft.Record) {
	text := r.Encode()
	for _, it := range m.items {
		if it.key == key && it.text == text {
			return
		}
	}
	m.keep(key, text, &r)
	m.do("store")
	m.fx.StrField("key", key)
	m.fx.StrField("value", text)
	m.fx.End()
	m.prune(key)
}

func (m *Machine) remove(key string) {
	if m.forget(key) {
		m.do("remove")
		m.fx.StrField("key", key)
		m.fx.End()
	}
}

// prune bounds the number of items: the oldest goes whose card is not live and
// not shown as ended.
func (m *Machine) prune(except string) {
	for len(m.items) > StoredMax {
		oldest := -1
		for i, it := range m.items {
			if it.key != except && !m.inUse(it) && (oldest < 0 || it.rec.At < m.items[oldest].rec.At) {
				oldest = i
			}
		}
		if oldest < 0 {
			return // all are in use: the cards have their own limit
		}
		m.remove(m.items[oldest].key)
	}
}

func (m *Machine) inUse(it item) bool {
	if m.byKey[it.card] != nil {
		return true
	}
	for _, key := range m.orphans {
		if key == it.key {
			return true
		}
	}
	return false
}

// storedElsewhere is another tab storing or removing an item.
func (m *Machine) storedElsewhere(key string, v value.Value) {
	if strings.HasSuffix(key, "/"+m.tab) {
		return
	}
	if text, is := v.Str(); is {
		m.keep(key, text, nil)
	} else {
		m.forget(key)
	}
	for cardKey, itemKey := range m.orphans {
		if itemKey == key {
			c := m.byKey[cardKey]
			m.drop(c)
			break
		}
	}
	if m.settledDown() {
		m.adopt()
	}
}

// storageFailed notes that storage threw, or works again: then everything is
// stored anew.
func (m *Machine) storageFailed(failed bool) {
	if m.memory == failed {
		return
	}
	m.memory = failed
	m.mark("cards")
	for _, c := range m.cards {
		c.Dirty = true
	}
	if failed {
		return
	}
	for _, it := range m.items {
		if it.tab == m.tab {
			m.do("store")
			m.fx.StrField("key", it.key)
			m.fx.StrField("value", it.text)
			m.fx.End()
		}
	}
}

// adopt shows stored drafts whose asks are gone as ended cards, and removes what
// is of no use. It runs when everything of a connection is known. A draft of
// another tab is left to that tab for a while.
func (m *Machine) adopt() {
	if m.over > 0 {
		return
	}
	for _, it := range append([]item(nil), m.items...) {
		own := it.tab == m.tab
		age := m.now.Wall - it.rec.At
		switch {
		case m.inUse(it) || m.maybe(it.rec.SessionID, it.rec.CallID):
		case !it.ok:
			if own {
				m.remove(it.key)
			}
		case !own && it.rec.Ended == nil && age < orphanAfter:
		case !own && age > pruneAfter:
			m.remove(it.key)
		default:
			m.adoptItem(it, own)
		}
	}
}

// maybe reports whether the ask could be listed although no card shows it.
func (m *Machine) maybe(sessionID, callID string) bool {
	s := m.byID[sessionID]
	return callID != "" && s != nil && s.partial && !s.live
}

func (m *Machine) adoptItem(it item, own bool) {
	key := it.card
	if !own {
		key += "/" + it.tab
	}
	if m.byKey[key] != nil || len(m.cards) >= CardsMax {
		return
	}
	c := card.New(key, it.rec.SessionID, it.rec.CallID, it.rec.EventID, it.rec.Questions(), m.now)
	c.Draft = it.rec.Draft
	c.Plan = false
	c.Ended = it.rec.Ended
	if c.Ended == nil {
		c.Ended = &draft.Ended{Reason: card.Closed, At: m.now.Wall}
		if s := m.byID[c.SessionID]; s == nil || !s.listed {
			c.Ended.Reason = card.SessionGone
		} else if s.live && c.Keyed() {
			if answers, ok := s.log.Set.Questions.Settled(c.CallID); ok {
				c.Ended.Reason, c.Ended.Answers = card.Elsewhere, answers
				c.Mine = it.rec.Sent && draft.Same(answers, c.Draft.Batch(c.Questions))
			}
		}
	}
	if !c.Kept() {
		if own {
			m.remove(it.key)
		}
		return
	}
	m.cards = append(m.cards, c)
	m.byKey[key], m.orphans[key] = c, it.key
	if s := m.byID[c.SessionID]; own && it.rec.Ended == nil && c.Keyed() && s != nil && s.listed && !s.live && m.looking() < looksMax {
		c.SentMark = it.rec.Sent
		c.Call = m.Look(c)
	}
}

// looking is the number of looks under way.
func (m *Machine) looking() (n int) {
	for _, c := range m.calls {
		if c.kind == callLook {
			n++
		}
	}
	return n
}
