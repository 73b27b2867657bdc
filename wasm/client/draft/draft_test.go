package draft

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"meanwhile/shared/event/value"
	"meanwhile/shared/projection"
)

func question(multi bool, labels ...string) projection.Question {
	q := projection.Question{ID: "q", Question: "?", MultiSelect: &multi}
	for _, l := range labels {
		q.Options = append(q.Options, projection.Option{Label: l})
	}
	return q
}

func TestEditing(t *testing.T) {
	single, multi := question(false, "a", "b"), question(true, "a", "b", "c")
	for _, tc := range []struct {
		name string
		q    projection.Question
		do   func(*Draft, []projection.Question)
		want Item
	}{
		{"a choice clears own words", single, func(d *Draft, qs []projection.Question) { d.Write(qs, 0, "x"); d.Choose(qs, 0, 1) }, Item{Selected: []string{"b"}}},
		{"own words clear a choice", single, func(d *Draft, qs []projection.Question) { d.Choose(qs, 0, 1); d.Write(qs, 0, "x") }, Item{Custom: "x"}},
		{"no words leave a choice", single, func(d *Draft, qs []projection.Question) { d.Choose(qs, 0, 1); d.Write(qs, 0, "") }, Item{Selected: []string{"b"}}},
		{"one choice at a time", single, func(d *Draft, qs []projection.Question) { d.Choose(qs, 0, 1); d.Choose(qs, 0, 0) }, Item{Selected: []string{"a"}}},
		{"multi keeps both", multi, func(d *Draft, qs []projection.Question) { d.Choose(qs, 0, 2); d.Choose(qs, 0, 0); d.Write(qs, 0, "x") },
			Item{Selected: []string{"a", "c"}, Custom: "x"}},
		{"multi toggles", multi, func(d *Draft, qs []projection.Question) { d.Choose(qs, 0, 2); d.Choose(qs, 0, 0); d.Choose(qs, 0, 2) }, Item{Selected: []string{"a"}}},
		{"a skip keeps the text", single, func(d *Draft, qs []projection.Question) { d.Write(qs, 0, "x"); d.Skip(0, true) }, Item{Custom: "x", Skipped: true}},
		{"writing takes the skip back", single, func(d *Draft, qs []projection.Question) { d.Skip(0, true); d.Write(qs, 0, "x") }, Item{Custom: "x"}},
		{"out of range", single, func(d *Draft, qs []projection.Question) {
			d.Choose(qs, 0, 9)
			d.Choose(qs, -1, 0)
			d.Write(qs, 7, "x")
			d.Skip(7, true)
			d.Show(7)
		}, Item{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			qs := []projection.Question{tc.q}
			d := New(qs)
			tc.do(&d, qs)
			if diff := cmp.Diff(tc.want, d.Answers[0]); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if !d.Fits(qs) {
				t.Error("does not fit its own questions")
			}
		})
	}
}

func TestRecommendedStartsSelectedAndPristine(t *testing.T) {
	qs := []projection.Question{question(false, "a (Recommended)", "b"), question(false, "a", "b (Recommended)")}
	d := New(qs)
	if !d.Pristine(qs) || len(d.Answers[0].Selected) != 1 || d.Answers[1].Selected != nil {
		t.Errorf("%+v", d)
	}
	if changed, _ := d.Choose(qs, 0, 0); changed || !d.Pristine(qs) {
		t.Error("choosing what is chosen is a change")
	}
	d.Choose(qs, 0, 1)
	if d.Pristine(qs) {
		t.Error("a choice is pristine")
	}
	d.Choose(qs, 0, 0)
	if !d.Pristine(qs) {
		t.Error("back at the start is not pristine")
	}
}

// A complete draft is a batch that the check takes; white space is no answer.
func FuzzBatchPassesTheCheck(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5}, "x")
	f.Add([]byte{9, 9, 1, 0, 255, 7, 3}, " \u200b\u2060")
	f.Fuzz(func(t *testing.T, ops []byte, text string) {
		text = strings.ToValidUTF8(text, "?")
		qs := []projection.Question{question(false, "a", "b"), question(true, "a", "b", "c"), question(false)}
		qs[1].ID, qs[2].ID = "r", "s"
		d := New(qs)
		for _, op := range ops {
			q := int(op>>4) % 3
			switch op % 5 {
			case 0:
				d.Choose(qs, q, int(op)%4)
			case 1:
				d.Write(qs, q, text[:len(Cut(text, int(op)%7))])
			case 2:
				d.Skip(q, op&8 == 0)
			case 3:
				d.Show(int(op) % 4)
			case 4:
				d.Write(qs, q, "")
			}
		}
		if !d.Fits(qs) {
			t.Fatalf("does not fit: %+v", d)
		}
		r := Record{At: 5, SessionID: "s", Draft: d, Stubs: StubsOf(qs)}
		back, ok := Decode(r.Encode())
		if !ok {
			t.Fatalf("cannot read %s", r.Encode())
		}
		if diff := cmp.Diff(r, back); diff != "" {
			t.Fatalf("-stored +read:\n%s", diff)
		}
		if d.Unanswered() >= 0 {
			return
		}
		var w value.Writer
		w.Begin()
		w.Name("answers")
		projection.AppendAnswers(&w, d.Batch(qs))
		w.End()
		v, _ := value.Parse(w.Bytes())
		if _, p := projection.CheckAnswer(qs, v); p != nil {
			t.Fatalf("%s: %v", w.Bytes(), p)
		}
	})
}

func TestFits(t *testing.T) {
	qs := []projection.Question{question(false, "a", "b")}
	for _, tc := range []struct {
		name string
		d    Draft
		want bool
	}{
		{"good", Draft{0, []Item{{Selected: []string{"a"}}}}, true},
		{"count", Draft{0, []Item{{}, {}}}, false},
		{"index", Draft{1, []Item{{}}}, false},
		{"not offered", Draft{0, []Item{{Selected: []string{"c"}}}}, false},
		{"two of a single", Draft{0, []Item{{Selected: []string{"a", "b"}}}}, false},
		{"both of a single", Draft{0, []Item{{Selected: []string{"a"}, Custom: "x"}}}, false},
	} {
		if got := tc.d.Fits(qs); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
	multi := []projection.Question{question(true, "a", "b")}
	if d := (Draft{0, []Item{{Selected: []string{"a", "a"}}}}); d.Fits(multi) {
		t.Error("a label twice")
	}
}

func TestDecodeRefuses(t *testing.T) {
	good := `{"v":1,"at":5,"s":"s","index":0,"answers":[{"selected":[],"custom":"","skipped":false}],"q":[{"id":"q","text":"?"}]}`
	if _, ok := Decode(good); !ok {
		t.Fatal("the good one")
	}
	for _, change := range [][2]string{
		{`"v":1`, `"v":2`}, {`"at":5`, `"at":"5"`}, {`"s":"s"`, `"s":""`}, {`"index":0`, `"index":1`}, {`"index":0`, `"index":-1`},
		{`"selected":[]`, `"selected":[1]`}, {`"selected":[]`, `"selected":"a"`}, {`"custom":""`, `"custom":null`}, {`"skipped":false`, `"skipped":0`},
		{`"q":[{"id":"q","text":"?"}]`, `"q":[]`}, {`}]}`, `}]`},
	} {
		if text := strings.Replace(good, change[0], change[1], 1); text == good {
			t.Fatalf("no test: %v", change)
		} else if _, ok := Decode(text); ok {
			t.Errorf("accepted %s", text)
		}
	}
}

func TestSame(t *testing.T) {
	x, y := "x", "x"
	a := []projection.Answer{{ID: "1", Selected: []string{"a", "b"}}, {ID: "2", Selected: []string{}, Custom: &x}}
	b := []projection.Answer{{ID: "2", Selected: []string{}, Custom: &y}, {ID: "1", Selected: []string{"b", "a"}}}
	if !Same(a, b) {
		t.Error("order is no difference")
	}
	b[0].Custom = nil
	if Same(a, b) {
		t.Error("a skip is not the words")
	}
}

func TestCut(t *testing.T) {
	if got := Cut("aé😀b", 3); got != "aé😀" {
		t.Errorf("%q", got)
	}
}
