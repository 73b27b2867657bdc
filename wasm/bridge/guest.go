package bridge

import (
	"context"
	"fmt"
)

// Guest is one instance with a state of its own, outside the pool: what a page
// has. It exists to replay a page's inputs in the host, byte for byte.
type Guest struct{ i *instance }

// Guest starts one. One owner.
func (b *Bridge) Guest(ctx context.Context) (*Guest, error) {
	i, err := b.instance(ctx)
	if err != nil {
		return nil, &Error{"start", err}
	}
	return &Guest{i}, nil
}

// Call runs any of the four exports; the times are for step and view alone.
func (g *Guest) Call(name string, wall, mono int64, in []byte) ([]byte, error) {
	switch name {
	case "step", "view":
		return g.i.call(name, in, uint64(wall), uint64(mono))
	case "check", "fold":
		return g.i.call(name, in)
	}
	return nil, fmt.Errorf("no export %q takes a document", name)
}

// Close frees the instance.
func (g *Guest) Close(ctx context.Context) error { return g.i.module.Close(ctx) }
