package chat

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func TestEvents(t *testing.T) {
	tests := []struct {
		name   string
		body   string
		want   []string
		pulses int
	}{
		{name: "empty"},
		{name: "one", body: "data: a\n\n", want: []string{"a"}, pulses: 1},
		{name: "no space after the colon", body: "data:a\n\n", want: []string{"a"}, pulses: 1},
		{name: "only one space goes", body: "data:  a\n\n", want: []string{" a"}, pulses: 1},
		{name: "crlf", body: "data: a\r\n\r\ndata: b\r\n\r\n", want: []string{"a", "b"}, pulses: 2},
		{name: "cr", body: "data: a\r\rdata: b\r\r", want: []string{"a", "b"}, pulses: 2},
		{name: "two lines of data", body: "data: a\ndata: b\n\n", want: []string{"a\nb"}, pulses: 2},
		{name: "comments are no events", body: ": keep-alive\n\n: keep-alive\n\ndata: a\n\n", want: []string{"a"}, pulses: 5},
		{name: "comment within an event", body: "data: a\n: hm\ndata: b\n\n", want: []string{"a\nb"}, pulses: 3},
		{name: "other fields", body: "event: x\nid: 1\nretry: 5\ndata: a\n\n", want: []string{"a"}, pulses: 4},
		{name: "field without colon", body: "data\n\n", want: []string{""}, pulses: 1},
		{name: "another field that begins like data", body: "database: x\n\n", pulses: 2},
		{name: "byte order mark", body: "\ufeffdata: a\n\n", want: []string{"a"}, pulses: 1},
		{name: "torso at the end is dropped", body: "data: a\n\ndata: b\n", want: []string{"a"}, pulses: 2},
		{name: "torso of a line", body: "data: a\n\ndata: b", want: []string{"a"}, pulses: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for name, r := range map[string]io.Reader{
				"whole":         strings.NewReader(tt.body),
				"byte for byte": iotest.OneByteReader(strings.NewReader(tt.body)),
			} {
				var got []string
				pulses := 0
				e := newEvents(r, func() { pulses++ })
				for {
					data, err := e.next()
					if err != nil {
						if err != io.EOF {
							t.Fatal(err)
						}
						break
					}
					got = append(got, string(data))
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("%s: events (-want +got)\n%s", name, diff)
				}
				if pulses != tt.pulses {
					t.Errorf("%s: %d pulses, want %d", name, pulses, tt.pulses)
				}
			}
		})
	}
}

func TestEventsLimits(t *testing.T) {
	for name, body := range map[string]string{
		"line":  "data: " + strings.Repeat("x", maxLine),
		"event": strings.Repeat("data: "+strings.Repeat("x", maxLine/2)+"\n", 2*maxEvent/maxLine+1),
	} {
		e := newEvents(strings.NewReader(body), func() {})
		if _, err := e.next(); !errors.Is(err, errTooLong) {
			t.Errorf("%s over the limit: %v", name, err)
		}
	}
}

// A CR ends its line without waiting for what follows: nothing may follow for
// minutes.
func TestEventsCRDoesNotWait(t *testing.T) {
	r, w := io.Pipe()
	defer r.Close()
	e := newEvents(r, func() {})
	go w.Write([]byte("data: a\r\r"))
	if data, err := e.next(); err != nil || string(data) != "a" {
		t.Errorf("got %q, %v", data, err)
	}
}

func FuzzEvents(f *testing.F) {
	f.Add("data: a\r\n\r\n: c\n\ndata: {}\n\n")
	f.Fuzz(func(t *testing.T, body string) {
		read := func(r io.Reader) (all []string) {
			e := newEvents(r, func() {})
			for {
				data, err := e.next()
				if err != nil {
					return all
				}
				all = append(all, string(data))
			}
		}
		whole, split := read(strings.NewReader(body)), read(iotest.OneByteReader(strings.NewReader(body)))
		if diff := cmp.Diff(whole, split); diff != "" {
			t.Errorf("how the bytes arrive changes the events\n%s", diff)
		}
	})
}
