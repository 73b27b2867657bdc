package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"

	"meanwhile/host/jsonrpc"
)

// A refusal carries nothing, whatever its route had meant to hand over.
func TestOnWrittenRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wrote := false
		g := New(Config{})
		g.Handle("hand", "", func(ctx context.Context, _ *Caller, _ json.RawMessage) (any, error) {
			OnWritten(ctx, func() { wrote = true })
			return make([]byte, jsonrpc.MaxFrame), nil
		})
		c, _ := dial(t, t.Context(), g, tokenOf("read"))
		if err := c.Call(t.Context(), methodInit, initAs(""), nil); err != nil {
			t.Fatal(err)
		}
		var refused *jsonrpc.Error
		if err := c.Call(t.Context(), "hand", nil, nil); !errors.As(err, &refused) || refused.Code != jsonrpc.CodeInternal {
			t.Errorf("got %v, want the result to be refused as too large", err)
		}
		_, _, written := g.Post(t.Context(), tokenOf("read"), []byte(`{"jsonrpc":"2.0","id":1,"method":"hand"}`))
		written()
		synctest.Wait()
		if wrote {
			t.Error("what was never sent counts as handed over")
		}
		c.Close(jsonrpc.CloseNormal, "")
	})
}
