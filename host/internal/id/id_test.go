package id

import "testing"

func TestNewIsRandom(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		got := New()
		if len(got) != 36 || seen[got] {
			t.Fatalf("New() = %q, want 36 characters not seen before", got)
		}
		seen[got] = true
	}
}
