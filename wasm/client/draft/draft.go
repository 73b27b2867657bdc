package draft

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"meanwhile/shared/projection"
)

// Recommended ends the label of an option that the asker recommends.
const Recommended = "(Recommended)"

// KeptMax bounds the own words of a draft. It lies over what an answer may have,
// so that a text too long is refused with its reason and not shortened unseen.
const KeptMax = 4 * projection.CustomMax

// Item is the draft of one question. Selected holds labels in the asker's order.
type Item struct {
	Selected []string
	Custom   string
	Skipped  bool
}

// Draft is the draft of one ask. Index is the question on show.
type Draft struct {
	Index   int
	Answers []Item
}

// New is the pristine draft. A plan review starts with nothing selected: only
// an explicit press approves.
func New(qs []projection.Question) Draft {
	d := Draft{Answers: make([]Item, len(qs))}
	if projection.PlanReview(qs) {
		return d
	}
	for i, q := range qs {
		if len(q.Options) > 0 && IsRecommended(q.Options[0].Label) {
			d.Answers[i].Selected = []string{q.Options[0].Label}
		}
	}
	return d
}

// IsRecommended reports whether a label carries the asker's recommendation.
func IsRecommended(label string) bool { return strings.HasSuffix(label, Recommended) }

// Pristine reports whether the person has changed nothing that is still there.
func (d *Draft) Pristine(qs []projection.Question) bool {
	fresh := New(qs)
	return slices.EqualFunc(d.Answers, fresh.Answers, func(a, b Item) bool {
		return a.Custom == b.Custom && a.Skipped == b.Skipped && slices.Equal(a.Selected, b.Selected)
	})
}

// Choose selects option o of question q; on a multi-select it toggles. A single
// choice clears the own words and shows the next question.
func (d *Draft) Choose(qs []projection.Question, q, o int) (changed, moved bool) {
	if !within(q, len(qs)) || !within(o, len(qs[q].Options)) {
		return false, false
	}
	it, label := &d.Answers[q], qs[q].Options[o].Label
	had := slices.Contains(it.Selected, label)
	if !qs[q].Multi() {
		changed = !had || it.Custom != "" || it.Skipped
		*it = Item{Selected: []string{label}}
		return changed, d.after(q)
	}
	var next []string
	for _, opt := range qs[q].Options { // in the asker's order, however they were clicked
		if slices.Contains(it.Selected, opt.Label) != (opt.Label == label) {
			next = append(next, opt.Label)
		}
	}
	it.Selected, it.Skipped = next, false
	return true, false
}

// Write sets the own words of question q; on a single-select any text clears
// the choice.
func (d *Draft) Write(qs []projection.Question, q int, text string) (changed bool) {
	if !within(q, len(qs)) {
		return false
	}
	text = Cut(text, KeptMax)
	it := &d.Answers[q]
	if it.Custom == text {
		return false
	}
	it.Custom, it.Skipped = text, false
	if text != "" && !qs[q].Multi() {
		it.Selected = nil
	}
	return true
}

// Skip skips question q, or takes that back; skipping shows the next question.
func (d *Draft) Skip(q int, on bool) (changed, moved bool) {
	if !within(q, len(d.Answers)) || d.Answers[q].Skipped == on {
		return false, false
	}
	d.Answers[q].Skipped = on
	return true, on && d.after(q)
}

// Show shows question q.
func (d *Draft) Show(q int) (moved bool) {
	if !within(q, len(d.Answers)) || q == d.Index {
		return false
	}
	d.Index = q
	return true
}

func (d *Draft) after(q int) bool { return q == d.Index && d.Show(q+1) }

// Answered reports whether the question is answered or skipped.
func (it Item) Answered() bool { return it.Skipped || len(it.Selected) > 0 || !Blank(it.Custom) }

// Unanswered is the first question that is neither answered nor skipped, or -1.
func (d *Draft) Unanswered() int {
	return slices.IndexFunc(d.Answers, func(it Item) bool { return !it.Answered() })
}

// Batch is what a submit sends.
func (d *Draft) Batch(qs []projection.Question) []projection.Answer {
	batch := make([]projection.Answer, len(qs))
	for i, q := range qs {
		it := d.Answers[i]
		batch[i] = projection.Answer{ID: q.ID, Selected: []string{}}
		if it.Skipped {
			continue
		}
		batch[i].Selected = append(batch[i].Selected, it.Selected...)
		if !Blank(it.Custom) {
			batch[i].Custom = &it.Custom
		}
	}
	return batch
}

// Fits reports whether a draft that was read belongs to these questions.
func (d *Draft) Fits(qs []projection.Question) bool {
	if len(d.Answers) != len(qs) || !within(d.Index, len(qs)) {
		return false
	}
	for i, it := range d.Answers {
		if !qs[i].Multi() && (len(it.Selected) > 1 || len(it.Selected) == 1 && it.Custom != "") {
			return false
		}
		for j, label := range it.Selected {
			offered := slices.ContainsFunc(qs[i].Options, func(o projection.Option) bool { return o.Label == label })
			if !offered || slices.Contains(it.Selected[:j], label) {
				return false
			}
		}
	}
	return true
}

// Same reports whether two batches say the same, question by question.
func Same(a, b []projection.Answer) bool {
	if len(a) != len(b) {
		return false
	}
	for _, x := range a {
		i := slices.IndexFunc(b, func(y projection.Answer) bool { return y.ID == x.ID })
		if i < 0 || !sameText(x.Custom, b[i].Custom) || len(x.Selected) != len(b[i].Selected) {
			return false
		}
		for _, l := range x.Selected {
			if !slices.Contains(b[i].Selected, l) {
				return false
			}
		}
	}
	return true
}

func sameText(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

func within(i, n int) bool { return i >= 0 && i < n }

// Blank reports whether s shows nothing: white space and zero-width characters,
// which projection refuses as an answer.
func Blank(s string) bool {
	return strings.TrimLeftFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || r >= 0x200b && r <= 0x200f || r == 0x2060 || r == 0xfeff
	}) == ""
}

// Cut keeps the first n characters of s.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	at := 0
	for ; n > 0 && at < len(s); n-- {
		_, size := utf8.DecodeRuneInString(s[at:])
		at += size
	}
	return s[:at]
}
