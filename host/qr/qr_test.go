package qr

import (
	"fmt"
	"strings"
	"testing"
)

const link = "https://box.example:7331/#code=0123456789abcdef0123456789abcdef01234567"

// Both drawings are the same modules.
func TestDrawings(t *testing.T) {
	c, err := Encode(link)
	if err != nil {
		t.Fatal(err)
	}
	n := c.Size()
	if n < 21 || (n-21)%4 != 0 {
		t.Fatalf("%d modules on a side, which no version has", n)
	}
	drawn := make([][]bool, n)
	for y := range drawn {
		drawn[y] = make([]bool, n)
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(c.Path(), "z"), "z") {
		var x, y, w, back int
		if _, err := fmt.Sscanf(part, "M%d %dh%dv1h-%d", &x, &y, &w, &back); err != nil || w != back {
			t.Fatalf("path %q: %v", part, err)
		}
		for i := range w {
			drawn[y][x+i] = true
		}
	}
	lines := strings.Split(strings.TrimSuffix(c.Terminal(), "\n"), "\n")
	for y := range n {
		for x := range n {
			r := []rune(lines[(y+Quiet)/2])[x+Quiet]
			ink := r == '█' || r == '▀' && (y+Quiet)%2 == 0 || r == '▄' && (y+Quiet)%2 == 1
			if got := drawn[y][x]; got != c.Black(x, y) || ink == c.Black(x, y) {
				t.Fatalf("module %d,%d: path %v, terminal %v, code %v", x, y, got, !ink, c.Black(x, y))
			}
		}
	}
	// The three corners by which a camera finds the code.
	for _, at := range [][2]int{{0, 0}, {n - 7, 0}, {0, n - 7}} {
		for i := range 7 {
			if !c.Black(at[0]+i, at[1]) || !c.Black(at[0], at[1]+i) {
				t.Errorf("no finder pattern at %v", at)
			}
		}
	}
}

func TestTooLong(t *testing.T) {
	if _, err := Encode(strings.Repeat("x", TextMax)); err != nil {
		t.Errorf("%d bytes: %v", TextMax, err)
	}
	if _, err := Encode(strings.Repeat("x", TextMax+1)); err != ErrTooLong {
		t.Errorf("%d bytes: got %v, want ErrTooLong", TextMax+1, err)
	}
}
