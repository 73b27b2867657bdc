package outside

import (
	"context"
	"errors"
	"testing"

	"meanwhile/host/session"
)

func TestOpenExistingMakesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		ctx := context.Background()
		before := len(r.store.List())
		look := Opening{Name: "hook", Key: "agent:1", Existing: true}
		if id, err := r.svc.Open(ctx, me, look); !errors.Is(err, session.ErrNoSession) {
			t.Errorf("open an unknown key = %q, %v, want %v", id, err, session.ErrNoSession)
		}
		if got := len(r.store.List()); got != before {
			t.Errorf("%d sessions, want %d", got, before)
		}
		made, err := r.svc.Open(ctx, me, Opening{Name: "hook", Key: "agent:1"})
		if err != nil {
			t.Fatal(err)
		}
		if found, err := r.svc.Open(ctx, me, look); err != nil || found != made {
			t.Errorf("open a known key = %q, %v, want %q", found, err, made)
		}
		other := me
		other.TokenID = "someone else"
		if _, err := r.svc.Open(ctx, other, look); !errors.Is(err, session.ErrNoSession) {
			t.Errorf("another token's key: %v, want %v", err, session.ErrNoSession)
		}
	})
}
