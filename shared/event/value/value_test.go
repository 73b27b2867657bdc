package value

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestParseKeepsWhatItRead(t *testing.T) {
	const doc = `{"b":[1,-2.50,1e9,true,false,null],"a":{"é":"\u0001\"\\"},"":""}`
	v, err := ParseString(" " + doc + "\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := string(v.Bytes()); got != doc {
		t.Errorf("got %s, want %s", got, doc)
	}
	if got := v.Get("a").Get("é").Text(); got != "\x01\"\\" {
		t.Errorf("nested text = %q", got)
	}
	if v.Get("none").Get("deeper").Kind() != Missing {
		t.Error("an absent chain is not Missing")
	}
}

func TestParseRefuses(t *testing.T) {
	for name, doc := range map[string]string{
		"empty":          "",
		"duplicate":      `{"a":1,"a":2}`,
		"trailing":       `{} {}`,
		"trailing word":  `1 x`,
		"bad UTF-8":      "\"\xff\"",
		"lone surrogate": `"\ud800"`,
		"cut":            `{"a":[1,`,
		"bare word":      `yes`,
		"leading zero":   `01`,
		"comma":          `[1,]`,
		"too deep":       strings.Repeat("[", DepthMax+1) + strings.Repeat("]", DepthMax+1),
	} {
		if v, err := ParseString(doc); err == nil {
			t.Errorf("%s: accepted as %s", name, v.Bytes())
		} else if _, ok := err.(*SyntaxError); !ok {
			t.Errorf("%s: %T, want *SyntaxError", name, err)
		}
	}
	if _, err := ParseString(strings.Repeat("[", DepthMax) + strings.Repeat("]", DepthMax)); err != nil {
		t.Errorf("depth %d refused: %v", DepthMax, err)
	}
}

func TestIntIsStrict(t *testing.T) {
	for doc, want := range map[string]bool{"0": true, "-1": true, "9223372036854775807": true,
		"1.0": false, "1e3": false, "9223372036854775808": false, `"1"`: false, "null": false} {
		v, err := ParseString(doc)
		if err != nil {
			t.Fatal(err)
		}
		if _, got := v.Int(); got != want {
			t.Errorf("Int(%s) ok = %v, want %v", doc, got, want)
		}
	}
}

func TestWriterCommas(t *testing.T) {
	var w Writer
	w.Begin()
	w.StrField("a", "x")
	w.OptField("none", "")
	w.Name("l")
	w.BeginArray()
	w.Int(1)
	w.Begin()
	w.End()
	w.Raw([]byte(`[]`))
	w.EndArray()
	w.BoolField("t", true)
	w.End()
	if got, want := string(w.Bytes()), `{"a":"x","l":[1,{},[]],"t":true}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// What we accept, the standard library accepts too, with the same meaning.
func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"a":[1,2,{"b":null}]}`, `"\u00e9"`, `-0.5e+3`, `[[[]]]`, "{\"a\":\"\xff\"}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := Parse(b)
		if err != nil {
			return
		}
		var want, got any
		if err := json.Unmarshal(b, &want); err != nil {
			if strings.Contains(err.Error(), "cannot unmarshal number") {
				return // out of float64's range: ours keeps the literal
			}
			t.Fatalf("we accept %q, encoding/json says %v", b, err)
		}
		if err := json.Unmarshal(v.Bytes(), &got); err != nil {
			t.Fatalf("written back unreadable: %q: %v", v.Bytes(), err)
		}
		a, _ := json.Marshal(want)
		c, _ := json.Marshal(got)
		if string(a) != string(c) {
			t.Fatalf("got %s, want %s", c, a)
		}
	})
}
