package sim

import (
	"fmt"
	"strings"
	"time"

	"meanwhile/shared/event/value"
	"meanwhile/shared/projection"
)

// act does something to a card and knows what the person means by it.
func (p *page) act(key, act, more string) {
	c := p.card(key)
	switch act {
	case "submit":
		if batch, whole := batchOf(c); whole {
			p.w.press(key, batch)
		}
	case "approve", "changes":
		return // no plans in this world
	}
	if p.w.detail {
		p.w.notef("%s: %s %s%s", p.name, act, key, more)
	}
	p.send(fmt.Sprintf(`{"type":"act","key":%q,"act":%q%s}`, key, act, more))
}

// batchOf is the answer that a card would send, and whether each of its
// questions has one.
func batchOf(c value.Value) (batch string, whole bool) {
	whole = true
	var out []projection.Answer
	for _, q := range c.Get("questions").Items() {
		a := projection.Answer{ID: q.Get("id").Text(), Selected: []string{}}
		custom := q.Get("custom").Text()
		if !q.Get("skipped").True() {
			for _, s := range q.Get("selected").Items() {
				i, _ := s.Int()
				a.Selected = append(a.Selected, q.Get("options").Items()[i].Get("label").Text())
			}
			if strings.TrimSpace(custom) != "" {
				a.Custom = &custom
			}
			whole = whole && !a.Skipped()
		}
		out = append(out, a)
	}
	return canonical(out), whole
}

func canonical(answers []projection.Answer) string {
	var w value.Writer
	projection.AppendAnswers(&w, answers)
	return string(w.Bytes())
}

// live does one random thing that a person does.
func (p *page) live() {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := p.dice
	if d.in(12) {
		p.send(fmt.Sprintf(`{"type":"window","visible":%v}`, d.in(2)))
		return
	}
	rows := p.look(`{"view":"cards"}`).Get("cards").Items()
	if len(rows) == 0 {
		return
	}
	row := rows[d.pick(len(rows))]
	if n := d.pick(len(rows)); rows[n].Get("group").Text() == "needs" { // look where it counts
		row = rows[n]
	}
	key := row.Get("key").Text()
	c := p.card(key)
	questions := c.Get("questions").Items()
	switch c.Get("state").Text() {
	case "ended":
		if d.in(3) {
			p.act(key, "dismiss", "")
		}
		return
	case "queued":
		if d.in(2) {
			p.act(key, "cancelReply", "")
		}
		return
	case "answered":
		return
	}
	if len(questions) == 0 {
		return
	}
	q := d.pick(len(questions))
	switch n := d.pick(24); {
	case n < 2:
		p.act(key, "focus", "")
	case n < 3:
		p.act(key, "blur", "")
	case n < 7:
		if o := len(questions[q].Get("options").Items()); o > 0 {
			p.act(key, "select", fmt.Sprintf(`,"q":%d,"o":%d,"pointer":%v`, q, d.pick(o), d.in(2)))
		}
	case n < 10:
		p.act(key, "custom", fmt.Sprintf(`,"q":%d,"text":%q`, q, []string{"", " ", "x", "some words", fmt.Sprint("words ", d.pick(1000))}[d.pick(5)]))
	case n < 11:
		p.act(key, "skip", fmt.Sprintf(`,"q":%d,"on":%v`, q, d.in(2)))
	case n < 12:
		p.act(key, "wait", "")
	case n < 13:
		p.act(key, []string{"hide", "open", "seen"}[d.pick(3)], "")
	case n < 14:
		p.act(key, "close", "")
	case n < 15 && d.in(3):
		p.act(key, "delegate", "")
	case n < 18:
		p.act(key, "submit", "")
	default:
		p.fill(key)
		p.act(key, "submit", "")
		if d.in(4) {
			p.act(key, "submit", "") // a double click
		}
	}
}

// fill answers every question that has no answer yet.
func (p *page) fill(key string) {
	for i, q := range p.card(key).Get("questions").Items() {
		if q.Get("answered").True() {
			continue
		}
		switch o := len(q.Get("options").Items()); {
		case p.dice.in(6):
			p.act(key, "skip", fmt.Sprintf(`,"q":%d,"on":true`, i))
		case o > 0 && p.dice.in(2):
			p.act(key, "select", fmt.Sprintf(`,"q":%d,"o":%d`, i, p.dice.pick(o)))
		default:
			p.act(key, "custom", fmt.Sprintf(`,"q":%d,"text":"own words %d"`, i, p.dice.pick(1000)))
		}
	}
}

// draftOf is what a card holds of the person's, word for word.
func draftOf(c value.Value) string {
	var b strings.Builder
	for _, q := range c.Get("questions").Items() {
		for _, s := range q.Get("selected").Items() {
			i, _ := s.Int()
			fmt.Fprintf(&b, "[%s]", q.Get("options").Items()[i].Get("label").Text())
		}
		fmt.Fprintf(&b, " %v %q;", q.Get("skipped").True(), q.Get("custom").Text())
	}
	return b.String()
}

// watchDrafts checks after each step that no draft changed but by the person.
func (p *page) watchDrafts(input string) {
	in, _ := value.ParseString(input)
	key := in.Get("key").Text()
	if in.Get("type").Text() == "act" {
		c, act := p.card(key), in.Get("act").Text()
		switch {
		case act == "dismiss":
			p.w.dismissed(p, key)
		case act != "select" && act != "custom" && act != "skip": // a draft that came from another tab is that tab's
		case c.Get("edited").True() && c.Get("state").Text() != "ended" && c.Get("state").Text() != "answered":
			p.typed[key] = draftOf(c)
		case c.Get("key").Text() != "" && !c.Get("edited").True():
			delete(p.typed, key)
		}
	}
	for _, key := range sortedKeys(p.typed) {
		c := p.card(key)
		switch state := c.Get("state").Text(); {
		case p.w.wasDismissed(p, key):
			delete(p.typed, key)
		case state == "" && p.stored(key): // loaded anew, and the card has not come yet
		case state == "" || state == "answered":
			p.w.gone(p, key, p.typed[key])
			delete(p.typed, key)
		case draftOf(c) != p.typed[key]:
			p.w.failf("%s: the draft of %s changed without the person, from %s to %s, by %s", p.name, key, p.typed[key], draftOf(c), input)
			p.typed[key] = draftOf(c)
		}
	}
}

// stored reports whether this tab's draft of a card is in storage.
func (p *page) stored(key string) bool {
	p.browser.mu.Lock()
	defer p.browser.mu.Unlock()
	_, stored := p.browser.items["mw/draft/"+key+"/"+p.tab]
	return stored
}

// think is how long a person takes between two things.
func (d *dice) think() time.Duration {
	switch d.pick(4) {
	case 0:
		return 0
	case 1:
		return d.upTo(50 * time.Millisecond)
	case 2:
		return d.upTo(2 * time.Second)
	}
	return d.upTo(20 * time.Second)
}
