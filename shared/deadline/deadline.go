package deadline

import (
	"context"
	"errors"
	"strconv"
	"time"
)

// Reason is the cause of a context that this package ended. It is a
// context.DeadlineExceeded to errors.Is.
type Reason struct {
	Code    string        // whose deadline it was, such as "BASH_TIMEOUT"
	Timeout time.Duration // how long it was
}

func (r *Reason) Error() string {
	return r.Code + " after " + strconv.FormatInt(r.Timeout.Milliseconds(), 10) + "ms"
}

// Is makes errors.Is(r, context.DeadlineExceeded) hold.
func (r *Reason) Is(target error) bool { return target == context.DeadlineExceeded }

// RangeError is a requested timeout that cannot be used.
type RangeError struct {
	Name  string // the field as the caller knows it
	Value time.Duration
}

func (e *RangeError) Error() string {
	return e.Name + " must be more than 0, not " + e.Value.String() + "; leave it out for the default"
}

// Clamp turns a caller's wish into a timeout: def when there is none, an error
// naming the field when it is not positive, and never more than limit, which
// binds the default too.
func Clamp(requested *time.Duration, def, limit time.Duration, name string) (time.Duration, error) {
	d := def
	if requested != nil {
		d = *requested
	}
	if d <= 0 {
		return 0, &RangeError{Name: name, Value: d}
	}
	return min(d, limit), nil
}

// New returns a context that ends with parent or after d, whichever is first.
// In the second case its cause is a *Reason with code. A d that is not positive
// arms no timer. The caller calls cancel when the work is over.
func New(parent context.Context, d time.Duration, code string) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return context.WithCancel(parent)
	}
	return context.WithTimeoutCause(parent, d, &Reason{Code: code, Timeout: d})
}

// Of returns the *Reason within err that has one of codes, or nil. Ask it with
// context.Cause(ctx): nil then means that the context was ended from above, by
// whatever deadline that may have been.
func Of(err error, codes ...string) *Reason {
	r, ok := errors.AsType[*Reason](err)
	if !ok {
		return nil
	}
	for _, code := range codes {
		if r.Code == code {
			return r
		}
	}
	return nil
}
