package jsonrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestUnmarshal(t *testing.T) {
	type inner struct {
		Name string `json:"name"`
	}
	type embedded struct {
		Deep bool `json:"deep"`
	}
	type outer struct {
		embedded
		ID     string            `json:"id"`
		Items  []inner           `json:"items"`
		ByName map[string]*inner `json:"byName"`
		Raw    json.RawMessage   `json:"raw"`
		Plain  int
	}
	tests := []struct {
		name, in, want string
	}{
		{name: "all", in: `{"id":"a","items":[{"name":"b"}],"byName":{"X":{"name":"c"}},"raw":{"Any":1},"Plain":1,"deep":true}`},
		{name: "empty", in: ` {} `},
		{name: "case", in: `{"ID":"a"}`, want: `unknown field "ID"`},
		{name: "case of an embedded field", in: `{"Deep":true}`, want: `unknown field "Deep"`},
		{name: "case in an item", in: `{"items":[{"name":"b"},{"Name":"b"}]}`, want: `unknown field "items.Name"`},
		{name: "case in a map's value", in: `{"byName":{"X":{"NAME":"c"}}}`, want: `unknown field "byName.NAME"`},
		{name: "unknown", in: `{"other":1}`, want: `unknown field "other"`},
		{name: "twice", in: `{"id":"a","id":"b"}`, want: `member "id" twice`},
		{name: "wrong type", in: `{"id":1}`, want: `field "id": send a string, not number`},
		{name: "wrong type in an item", in: `{"items":[{"name":true}]}`, want: `field "items.name": send a string, not bool`},
		{name: "wrong type of an item", in: `{"items":[1]}`, want: `field "items": send an object, not number`},
		{name: "no array", in: `{"items":{}}`, want: `field "items": send an array, not object`},
		{name: "no boolean", in: `{"deep":"yes"}`, want: `deep": send true or false, not string`},
		{name: "a fraction", in: `{"Plain":1.5}`, want: `field "Plain": send a whole number that fits, not 1.5`},
		{name: "no object", in: `[]`, want: "send an object, not array"},
		{name: "trailing", in: `{} 1`, want: "not one JSON text"},
		{name: "utf-8", in: "{\"id\":\"\xff\"}", want: "not valid UTF-8"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var v outer
			err := Unmarshal([]byte(test.in), &v)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestParamsFault(t *testing.T) {
	var v struct {
		A int `json:"a"`
	}
	if err := Params(nil, &v); err != nil {
		t.Errorf("absent params: %v", err)
	}
	var f *Fault
	if err := Params(json.RawMessage(`{"b":1}`), &v); !errors.As(err, &f) || f.Code != CodeInvalidParams || !strings.Contains(f.Message, `"b"`) {
		t.Errorf("got %v, want a fault that names the field", err)
	}
}

func TestManyMembers(t *testing.T) {
	var b bytes.Buffer
	for i := range 3 * nameScan {
		fmt.Fprintf(&b, `,"m%d":{"m%d":1}`, i, i)
	}
	if err := check([]byte("{" + b.String()[1:] + "}")); err != nil {
		t.Errorf("distinct members: %v", err)
	}
	for _, twice := range []int{0, nameScan, 3*nameScan - 1} {
		text := fmt.Sprintf(`{%s,"m%d":1}`, b.String()[1:], twice)
		if err := check([]byte(text)); err == nil {
			t.Errorf("member m%d twice was not seen", twice)
		}
	}
}

func TestChunks(t *testing.T) {
	tests := []struct {
		name string
		item string
		want int
	}{
		{name: "small", item: `1`, want: 1},
		{name: "at the limit", item: `"` + strings.Repeat("x", ChunkText-2) + `"`, want: 1},
		{name: "over the limit", item: `"` + strings.Repeat("x", ChunkText-1) + `"`, want: 2},
		{name: "cut inside a character", item: `"` + strings.Repeat("語", ChunkText) + `"`, want: 4},
		{name: "all escapes", item: `"` + strings.Repeat(`\"`, 2*ChunkText) + `"`, want: 5},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			parts := chunks(json.RawMessage(test.item))
			if len(parts) != test.want {
				t.Errorf("got %d parts, want %d", len(parts), test.want)
			}
			joined := ""
			for i, p := range parts {
				if len(p) > MaxFrame-1024 || !utf8.Valid(p) || !json.Valid(p) {
					t.Fatalf("part %d of %d bytes does not fit or is not valid", i, len(p))
				}
				if len(parts) == 1 {
					joined = string(p)
					continue
				}
				text, more, ok := asChunk(p)
				if !ok || more != (i < len(parts)-1) {
					t.Errorf("part %d: chunk %v, more %v", i, ok, more)
				}
				joined += text
			}
			if joined != test.item {
				t.Error("the parts do not join to the item")
			}
		})
	}
}

func FuzzParseMessage(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":[1,"\ud83d\ude00",null,{"y":-1.5e3}]}}`,
		`{"jsonrpc":"2.0","id":"a","result":{}}`,
		`{"jsonrpc":"2.0","id":"a","error":{"code":-1,"message":"m","data":[]}}`,
		`{"jsonrpc":"2.0","method":"n"}`, `[]`, `{"a":1,"a":2}`, `{"\u0061":1}`, "\xff", `{"jsonrpc":"2.0","id":1e2,"method":"a"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		m, err := ParseMessage(frame)
		if err != nil {
			var bad *FrameError
			if !errors.As(err, &bad) || bad.Close == 0 {
				t.Fatalf("error %v is not a FrameError with a code", err)
			}
			return
		}
		// What was read is written and read back the same.
		var again []byte
		switch {
		case m.Method != "":
			again = appendRequest(m.ID, m.Method, m.Params)
		case m.Error != nil:
			again = EncodeFault(m.ID, &Fault{Code: m.Error.Code, Message: m.Error.Message, Data: m.Error.Data})
		default:
			again = EncodeResult(m.ID, m.Result)
		}
		if len(again) > MaxFrame {
			return
		}
		m2, err := ParseMessage(again)
		if err != nil {
			t.Fatalf("%s: %v", again, err)
		}
		if diff := cmp.Diff(m, m2, cmp.AllowUnexported(ID{})); diff != "" {
			t.Fatalf("read back (-want +got):\n%s", diff)
		}
	})
}

// FuzzCheck holds the own walk to the library's grammar and to a simple model
// of duplicate names.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{`{"a":{"b":1,"b":2}}`, `[[[]]]`, `"\ud800"`, `{"a":1,"\u0061":1}`, ` 1 `, `{"a":[{},{}]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		err := check(text)
		if err == nil && !(json.Valid(text) && utf8.Valid(text)) {
			t.Fatal("passed, and is not JSON in UTF-8")
		}
		if err != nil {
			return
		}
		dec := json.NewDecoder(bytes.NewReader(text))
		var open []map[string]bool // nil: an array
		key := false
		for {
			tok, err := dec.Token()
			if err != nil {
				return
			}
			switch v := tok.(type) {
			case json.Delim:
				switch v {
				case '{':
					open, key = append(open, map[string]bool{}), true
					continue
				case '[':
					open = append(open, nil)
				default:
					open = open[:len(open)-1]
				}
				if len(open) > MaxDepth {
					t.Fatal("passed, and is too deep")
				}
			case string:
				if key {
					top := open[len(open)-1]
					if top[v] {
						t.Fatalf("passed, and has %q twice", v)
					}
					top[v], key = true, false
					continue
				}
			}
			key = len(open) > 0 && open[len(open)-1] != nil
		}
	})
}

func BenchmarkParseMessage(b *testing.B) {
	frame := []byte(`{"jsonrpc":"2.0","id":17,"method":"session/follow","params":{"sessionId":"0f0e5a1c","after":12,"list":["` + strings.Repeat("x", 400) + `"]}}`)
	b.SetBytes(int64(len(frame)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseMessage(frame); err != nil {
			b.Fatal(err)
		}
	}
}
