package value

import (
	"encoding/json"
	"strings"
	"testing"
)

// What the standard library reads we read too, with the same meaning, unless it
// holds one of the things that only we refuse.
func TestParseAcceptsWhatJSONIs(t *testing.T) {
	many := `{"a0":0`
	for i := range 40 {
		many += `,"b` + strings.Repeat("x", i) + `":[]`
	}
	for _, doc := range []string{
		`"\"\\\/\b\f\n\r\t\u0041\u00e9\ud83d\ude00"`, `"é😀"`, `""`, ` [ 1 , 2 ] `, "\t{\n\"a\" : { } }\r",
		`0`, `-0`, `10`, `0.5`, `-1.25e-3`, `1E+9`, `[[],{},""]`, many + `}`, `"\u2028"`, `"` + "\u007f" + `"`, `null`,
	} {
		v, err := ParseString(doc)
		if err != nil {
			t.Errorf("%s: %v", doc, err)
			continue
		}
		var want, got any
		if err := json.Unmarshal([]byte(doc), &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(v.Bytes(), &got); err != nil {
			t.Fatalf("%s written back: %v", doc, err)
		}
		a, _ := json.Marshal(want)
		b, _ := json.Marshal(got)
		if string(a) != string(b) {
			t.Errorf("got %s, want %s", b, a)
		}
	}
}

func TestParseRefusesPieces(t *testing.T) {
	for _, doc := range []string{
		`+1`, `.5`, `1.`, `1e`, `-`, `- 1`, `0x1`, `tru`, `nulll`, `"\x"`, `"\u12"`, `"\u12g4"`, `"\ud800\u0041"`, `"\udc00"`,
		"\"a\nb\"", `{"a"}`, `{"a":}`, `{a:1}`, `{"a":1,}`, `{,}`, `[,]`, `[1 2]`, `{"a":1 "b":2}`, `]`, `"a`, `'a'`, "\ufeff1", "1\x00",
		many(20) + `,"b3":1}`,
	} {
		if v, err := ParseString(doc); err == nil {
			t.Errorf("%q accepted as %s", doc, v.Bytes())
		}
	}
}

func many(n int) string {
	doc := `{"a":0`
	for i := range n {
		doc += `,"b` + string(rune('0'+i)) + `":1`
	}
	return doc
}
