package bash

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCaptureKeepsBothEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &capture{headMax: rapid.IntRange(0, 20).Draw(t, "head"), tailMax: rapid.IntRange(0, 20).Draw(t, "tail")}
		var all string
		for _, piece := range rapid.SliceOfN(rapid.StringMatching(`[a-z]{0,30}`), 0, 10).Draw(t, "pieces") {
			c.Write([]byte(piece))
			all += piece
		}
		got, missing := c.text()
		if len(all) <= c.headMax+c.tailMax {
			if got != all || missing != 0 {
				t.Fatalf("got %q, %d missing; want all of %q", got, missing, all)
			}
			return
		}
		if want := int64(len(all) - c.headMax - c.tailMax); missing != want {
			t.Fatalf("%d missing, want %d", missing, want)
		}
		if !strings.HasPrefix(got, all[:c.headMax]) || !strings.HasSuffix(got, all[len(all)-c.tailMax:]) {
			t.Fatalf("got %q of %q", got, all)
		}
		if len(c.tail) > 2*c.tailMax {
			t.Fatalf("%d bytes held for a tail of %d", len(c.tail), c.tailMax)
		}
	})
}

func TestCaptureSince(t *testing.T) {
	c := &capture{tailMax: 5}
	var seen int64
	read := func() (s string) { s, seen = c.since(seen); return s }
	if got := read(); got != "" {
		t.Errorf("got %q of nothing", got)
	}
	c.Write([]byte("abc"))
	if got := read(); got != "abc" {
		t.Errorf("got %q, want abc", got)
	}
	c.Write([]byte("de"))
	c.Write([]byte("f"))
	if got := read(); got != "def" {
		t.Errorf("got %q, want def", got)
	}
	c.Write([]byte("0123456789"))
	if got, want := read(), "[… 5 bytes left out …]\n56789"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A character cut by our own limits leaves no mark; one that was broken before
// does.
func TestCaptureCutsCharacters(t *testing.T) {
	c := &capture{headMax: 4, tailMax: 4}
	c.Write([]byte("aé€x€éb")) // the limits cut both euro signs
	got, _ := c.text()
	if want := "aé\n[… 7 bytes left out …]\néb"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	c = &capture{headMax: 10, tailMax: 10}
	c.Write([]byte("a\xffb"))
	if got, _ := c.text(); got != "a\ufffdb" {
		t.Errorf("got %q", got)
	}
}
