package bash

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseStat(t *testing.T) {
	const rest = " 12 34 34 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 2 3"
	tests := []struct {
		name, stat string
		want       process
		ok         bool
	}{
		{name: "plain", stat: "7 (sleep) S" + rest, want: process{pid: 7, parent: 12, group: 34, start: 98765}, ok: true},
		{name: "a name made to deceive", stat: "7 (a) Z 1 1) S" + rest, want: process{pid: 7, parent: 12, group: 34, start: 98765}, ok: true},
		{name: "dead, not reaped", stat: "7 (sleep) Z" + rest},
		{name: "dead", stat: "7 (sleep) X" + rest},
		{name: "empty"},
		{name: "cut", stat: "7 (sleep) S 12 34"},
		{name: "not numbers", stat: "7 (sleep) S a b c d e f g h i j k l m n o p q r s t"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := parseStat(7, []byte(tt.stat))
			if ok != tt.ok {
				t.Fatalf("ok %v, want %v", ok, tt.ok)
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(process{})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// The host itself is never a member, whoever its parent is.
func TestTheHostIsNoMember(t *testing.T) {
	self, ok := readProcess(os.Getpid())
	if !ok {
		t.Fatal("cannot read ourselves")
	}
	for _, p := range (family{leader: self.parent}).find(false) {
		if p.pid == self.pid {
			t.Error("the host is listed")
		}
	}
}
