package deadline

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

func TestReason(t *testing.T) {
	var err error = &Reason{Code: "BASH_TIMEOUT", Timeout: 1500 * time.Millisecond}
	if got, want := err.Error(), "BASH_TIMEOUT after 1500ms"; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error("is not context.DeadlineExceeded")
	}
	if errors.Is(err, context.Canceled) {
		t.Error("is context.Canceled")
	}
}

func TestClamp(t *testing.T) {
	d := func(d time.Duration) *time.Duration { return &d }
	tests := []struct {
		name      string
		requested *time.Duration
		def, max  time.Duration
		want      time.Duration
		wantErr   bool
	}{
		{name: "absent", def: 2, max: 10, want: 2},
		{name: "absent, default over the maximum", def: 20, max: 10, want: 10},
		{name: "within", requested: d(5), def: 2, max: 10, want: 5},
		{name: "at the maximum", requested: d(10), def: 2, max: 10, want: 10},
		{name: "over the maximum", requested: d(11), def: 2, max: 10, want: 10},
		{name: "smallest", requested: d(1), def: 2, max: 10, want: 1},
		{name: "zero", requested: d(0), def: 2, max: 10, wantErr: true},
		{name: "negative", requested: d(-1), def: 2, max: 10, wantErr: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Clamp(tt.requested, tt.def, tt.max, "timeout")
			if (err != nil) != tt.wantErr || got != tt.want {
				t.Fatalf("got %v, %v; want %v, error %v", got, err, tt.want, tt.wantErr)
			}
			if _, ok := errors.AsType[*RangeError](err); ok != tt.wantErr {
				t.Errorf("error type %T", err)
			}
			if err != nil && !strings.HasPrefix(err.Error(), "timeout ") {
				t.Errorf("error %q does not name the field", err)
			}
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		pos := rapid.Int64Range(1, 1<<40)
		req, def, limit := time.Duration(pos.Draw(t, "requested")), time.Duration(pos.Draw(t, "def")), time.Duration(pos.Draw(t, "max"))
		got, err := Clamp(&req, def, limit, "timeout")
		if err != nil || got <= 0 || got > limit || got > req {
			t.Fatalf("got %v, %v", got, err)
		}
	})
}

func TestNew(t *testing.T) {
	t.Run("one tick either side", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := New(t.Context(), time.Second, "A")
			defer cancel()
			time.Sleep(time.Second - 1)
			synctest.Wait()
			if err := ctx.Err(); err != nil {
				t.Fatalf("ended early: %v", err)
			}
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			if r := Of(context.Cause(ctx), "A"); r == nil || r.Timeout != time.Second {
				t.Fatalf("cause %v", context.Cause(ctx))
			}
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				t.Errorf("err %v", ctx.Err())
			}
		})
	})
	for _, d := range []time.Duration{0, -1} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := New(t.Context(), d, "A")
			time.Sleep(1000 * time.Hour)
			synctest.Wait()
			if _, ok := ctx.Deadline(); ok || ctx.Err() != nil {
				t.Errorf("%v armed a timer", d)
			}
			cancel()
			if ctx.Err() == nil {
				t.Error("cancel does nothing")
			}
		})
	}
	t.Run("parent first", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			why := errors.New("user pressed stop")
			parent, stop := context.WithCancelCause(t.Context())
			ctx, cancel := New(parent, time.Second, "A")
			defer cancel()
			time.Sleep(time.Second / 2)
			stop(why)
			time.Sleep(time.Hour)
			synctest.Wait()
			if got := context.Cause(ctx); got != why {
				t.Errorf("cause %v, want the first one, %v", got, why)
			}
			if Of(context.Cause(ctx), "A") != nil {
				t.Error("aborted and timed out")
			}
		})
	})
	t.Run("timeout first, and for good", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			parent, stop := context.WithCancelCause(t.Context())
			ctx, cancel := New(parent, time.Second, "A")
			time.Sleep(time.Second)
			synctest.Wait()
			stop(errors.New("user pressed stop"))
			cancel()
			if Of(context.Cause(ctx), "A") == nil {
				t.Errorf("cause %v, want the timeout", context.Cause(ctx))
			}
		})
	})
	t.Run("an outer deadline is not ours", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			outer, cancelOuter := New(t.Context(), time.Second, "OUTER")
			defer cancelOuter()
			inner, cancelInner := New(outer, time.Minute, "INNER")
			defer cancelInner()
			time.Sleep(time.Second)
			synctest.Wait()
			cause := context.Cause(inner)
			if Of(cause, "INNER") != nil {
				t.Error("the outer deadline was taken for the inner one")
			}
			if Of(cause, "OUTER") == nil {
				t.Errorf("cause %v, want the outer reason", cause)
			}
		})
	})
}

func TestOf(t *testing.T) {
	a := &Reason{Code: "A", Timeout: 1}
	tests := []struct {
		name  string
		err   error
		codes []string
		want  *Reason
	}{
		{name: "nil", codes: []string{"A"}},
		{name: "bare", err: a, codes: []string{"A"}, want: a},
		{name: "one of several", err: a, codes: []string{"B", "A"}, want: a},
		{name: "wrapped", err: errors.Join(errors.New("read"), a), codes: []string{"A"}, want: a},
		{name: "foreign", err: a, codes: []string{"B"}},
		{name: "no code asked", err: a},
		{name: "plain deadline", err: context.DeadlineExceeded, codes: []string{"A"}},
		{name: "cancelled", err: context.Canceled, codes: []string{"A"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Of(tt.err, tt.codes...); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
