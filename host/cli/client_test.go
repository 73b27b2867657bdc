package cli

import (
	"testing"

	"github.com/spf13/cobra"
)

// A command that is suggested finds the host that this one found.
func TestSameHost(t *testing.T) {
	for _, tc := range []struct {
		name, want string
		args       []string
	}{
		{"the default", "", nil},
		{"a directory", " --data '/tmp/d'", []string{"--data", "/tmp/d"}},
		{"a name to quote, and settings", " --data '/tmp/my data' --config 'c.toml'", []string{"--config", "c.toml", "--data", "/tmp/my data"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := &cobra.Command{}
			hostFlags(c)
			if err := c.ParseFlags(tc.args); err != nil {
				t.Fatal(err)
			}
			if got := sameHost(c); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
