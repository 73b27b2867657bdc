package abi

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"meanwhile/wasm/client/machine"
)

func put(m *Module, in string) int { return copy(m.Buffer(len(in)), in) }

func TestBuffer(t *testing.T) {
	var m Module
	if m.Buffer(InputMax+1) != nil || m.Buffer(-1) != nil {
		t.Error("a buffer beyond the limit")
	}
	big := m.Buffer(bufferKept + 1)
	if len(big) <= bufferKept {
		t.Error("too small")
	}
	if len(m.Buffer(10)) > bufferKept {
		t.Error("the large buffer stays")
	}
	if out := m.Check(bufferKept * 2); !strings.Contains(string(out), "TOO_LARGE") {
		t.Errorf("reading past the buffer: %s", out)
	}
}

func TestPanicIsATrapForGood(t *testing.T) {
	var m Module
	n := put(&m, `{}`)
	// A machine that was not made for it: a broken invariant of our own.
	out := m.call(n, func([]byte) ([]byte, *machine.Error) { panic("invariant") })
	if got := string(out); got != `{"error":{"code":"TRAP","message":"invariant"}}` {
		t.Errorf("got %s", got)
	}
	if got := string(m.Check(put(&m, `{"check":"ask","questions":[]}`))); !strings.Contains(got, "TRAP") {
		t.Errorf("went on after a trap: %s", got)
	}
}

// No input makes it trap or answer with anything but a document, and a refused
// one leaves the view as it was.
func FuzzStep(f *testing.F) {
	for _, s := range []string{
		`{"type":"request","id":"d2","method":"user-questions/request","params":{"eventId":"e","sessionId":"s","request":{"questions":[{"id":"a","question":"?"}],"wait":{"callId":"c","timed":true}}}}`,
		`{"type":"item","id":"m1","value":{"sessions":[{"id":"s","seq":1,"active":[{"callId":"c","questions":[{"id":"a","question":"?"}],"state":"continued"}],"queued":[{"id":"x","callId":"c","text":"{}"}]}]}}`,
		`{"type":"item","id":"m1","value":{"upsert":[{"id":"s"}],"removed":["s"]}}`,
		`{"type":"item","id":"m2","value":{"remainingMs":5}}`,
		`{"type":"item","id":"m3","value":{"header":{"version":1,"id":"s","createdAt":1},"seq":-1}}`,
		`{"type":"item","id":"m3","value":{"events":[{"seq":0,"time":1,"type":"tool/call","data":{"callId":"c","name":"ask_user_question","arguments":"{}"}}],"seq":0}}`,
		`{"type":"notify","method":"remote/settled","params":{"eventId":"e","kind":"result","by":"x"}}`,
		`{"type":"notify","method":"remote/synced","params":{"eventIds":["e"]}}`,
		`{"type":"act","key":"c:s:c","act":"select","q":0,"o":-1}`, `{"type":"act","key":"c:s:c","act":"custom","q":0,"text":"x"}`,
		`{"type":"act","key":"c:s:c","act":"submit"}`, `{"type":"act","key":"c:s:c","act":"skip","q":99999999999,"on":true}`,
		`{"type":"result","id":"m4","result":{"accepted":true}}`, `{"type":"error","id":"m4","error":{"data":{"code":"BAD_ANSWER","field":"answers[99].x"}}}`,
		`{"type":"down"}`, `{"type":"stopped"}`, `{"type":"follow","sessionId":"s"}`, `{"type":"stored","key":"mw/draft/c:s:c/T2","value":null}`,
		`{"type":"tick"}`, `{"type":"fold","sessionId":"s","key":"t0"}`, `{"type":"cancel","id":"d2"}`, `{"type":"storage","failed":true}`,
		`{"type":"settings","carryOnMs":-5}`, `null`, `[]`, `{`,
	} {
		f.Add(s, int64(7000))
	}
	f.Fuzz(func(t *testing.T, in string, ms int64) {
		var m Module
		wall, mono := int64(1), int64(1)
		step := func(in string) string {
			out := m.Step(wall, mono, put(&m, in))
			var doc map[string]any
			if err := json.Unmarshal(out, &doc); err != nil {
				t.Fatalf("%s gave %s: %v", in, out, err)
			}
			if strings.HasPrefix(string(out), `{"error":{"code":"TRAP"`) {
				t.Fatalf("%s gave %s", in, out)
			}
			return string(out)
		}
		step(`{"type":"init","tab":"T","nonce":"n","stored":{"mw/draft/c:s:c/T2":` + strconv.Quote("{}") + `}}`)
		step(`{"type":"up","clientId":"me","scopes":["read","answer"],"protocol":1}`)
		step(`{"type":"request","id":"d1","method":"user-questions/request","params":{"eventId":"e","sessionId":"s","request":{"questions":[{"id":"a","question":"?"}],"wait":{"callId":"c","timed":true}}}}`)
		step(`{"type":"follow","sessionId":"s"}`)
		step(in)
		wall, mono = wall+ms, mono+ms
		step(`{"type":"tick"}`)
		step(in)
		for _, view := range []string{`{"view":"cards"}`, `{"view":"card","key":"c:s:c"}`, `{"view":"sessions"}`, `{"view":"transcript","sessionId":"s"}`, in} {
			if out := m.View(wall, mono, put(&m, view)); strings.HasPrefix(string(out), `{"error":{"code":"TRAP"`) || !json.Valid(out) {
				t.Fatalf("view %s gave %s", view, out)
			}
		}
		for _, call := range []func(int) []byte{m.Check, m.Fold} {
			if out := call(put(&m, in)); strings.HasPrefix(string(out), `{"error":{"code":"TRAP"`) || !json.Valid(out) {
				t.Fatalf("%s gave %s", in, out)
			}
		}
	})
}

func BenchmarkCheckAnswer(b *testing.B) {
	var m Module
	in := `{"check":"answer","questions":[{"id":"db","question":"Which?","options":[{"label":"A"},{"label":"B"}]}],"answer":{"answers":[{"id":"db","selected":["B"]}]}}`
	for b.Loop() {
		m.Check(put(&m, in))
	}
}

func BenchmarkFold(b *testing.B) {
	var m Module
	log := `{"view":"userQuestions"}` + "\n" + `{"version":1,"id":"s","createdAt":1}` + "\n"
	for i := range 1000 {
		log += `{"seq":` + strconv.Itoa(i) + `,"time":1,"type":"turn/start","data":{"turn":1}}` + "\n"
	}
	b.SetBytes(int64(len(log)))
	for b.Loop() {
		m.Fold(put(&m, log))
	}
}
