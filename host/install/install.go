package install

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"
)

const (
	// BackupSuffix is added to a file's name for the text that it had before.
	BackupSuffix = ".meanwhile-backup"
	fileMax      = 8 << 20
)

// ErrChanged is a file that was written since the plan was made.
var ErrChanged = errors.New("was written by somebody else just now: run the command again")

// Options of a plan.
type Options struct {
	Agent string
	Scope Scope
	Place Place
	// Command is how the program is started: its name, or its path.
	Command string
	// Args follow each command, such as --data DIR.
	Args []string
	// Window is how long a question of the agent's own tool waits.
	Window time.Duration
}

// Change is one file that is to be written, or removed when After is nil.
type Change struct {
	Path          string
	Before, After []byte // Before is nil for a file that is not there
	// Backup is set where Before is to be kept, and Forget where the kept text
	// is of no more use.
	Backup, Forget bool
}

// Plan is what an installation or its end comes to.
type Plan struct {
	Changes []Change
	Notes   []string
}

// Install plans an installation.
func Install(o Options) (Plan, error) {
	a, targets, err := o.resolve()
	if err != nil {
		return Plan{}, err
	}
	p := Plan{Notes: a.notes}
	for _, t := range targets {
		before, err := readFile(t.path)
		if err != nil {
			return Plan{}, err
		}
		after, err := o.apply(t, before)
		if err != nil {
			return Plan{}, fmt.Errorf("%s: %w", t.path, err)
		}
		if before == nil || !bytes.Equal(before, after) {
			// A text with entries of ours is no text from before.
			have, _, err := t.count(before)
			if err != nil {
				return Plan{}, fmt.Errorf("%s: %w", t.path, err)
			}
			p.Changes = append(p.Changes, Change{Path: t.path, Before: before, After: after,
				Backup: before != nil && have == 0 && !exists(t.path+BackupSuffix)})
		}
	}
	return p, nil
}

// Uninstall plans the end of an installation.
func Uninstall(o Options) (Plan, error) {
	_, targets, err := o.resolve()
	if err != nil {
		return Plan{}, err
	}
	var p Plan
	for _, t := range targets {
		before, err := readFile(t.path)
		if err != nil {
			return Plan{}, err
		}
		if before == nil {
			continue
		}
		kept, err := readFile(t.path + BackupSuffix)
		if err != nil {
			return Plan{}, err
		}
		after, err := o.undo(t, before, kept)
		if err != nil {
			return Plan{}, fmt.Errorf("%s: %w", t.path, err)
		}
		if after == nil || !bytes.Equal(before, after) {
			p.Changes = append(p.Changes, Change{Path: t.path, Before: before, After: after, Forget: kept != nil})
		}
	}
	return p, nil
}

// Missing lists the files of an agent that lack an entry of ours. any is true
// when one of them has at least one.
func Missing(o Options) (missing []string, any bool, err error) {
	_, targets, err := o.resolve()
	if err != nil {
		return nil, false, err
	}
	for _, t := range targets {
		src, err := readFile(t.path)
		if err != nil {
			return nil, false, err
		}
		have, want, err := t.count(src)
		if err != nil {
			return nil, false, fmt.Errorf("%s: %w", t.path, err)
		}
		any = any || have > 0
		if have < want {
			missing = append(missing, t.path)
		}
	}
	return missing, any, nil
}

// count says how many of the entries that a file is to have are there, in
// whatever version.
func (t *target) count(src []byte) (have, want int, err error) {
	if t.toml {
		if _, _, ok := findBlock(src); ok {
			have = 1
		}
		return have, 1, nil
	}
	root, err := parse(src)
	if err != nil {
		return 0, 0, err
	}
	if t.server != nil {
		want++
		if old := root.at(t.servers).get(serverName); old != nil && ourServer(old.decode(src)) {
			have++
		}
	}
	if t.hooks == nil {
		return have, want, nil
	}
	for _, e := range t.hooks.events {
		want++
		list := root.at([]string{"hooks", e.name})
		if list != nil && slices.ContainsFunc(list.items, func(item *node) bool { return t.hooks.ours(src, item) != 0 }) {
			have++
		}
	}
	return have, want, nil
}

func (o *Options) resolve() (agent, []target, error) {
	a, err := agentOf(o.Agent)
	if err != nil {
		return a, nil, err
	}
	if o.Scope != User && o.Scope != Project {
		return a, nil, fmt.Errorf("scope %q: write user or project", o.Scope)
	}
	return a, a.files(o.Place, o.Scope), nil
}
