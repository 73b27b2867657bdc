package gateway

import "context"

type writtenKey struct{}

// OnWritten, called by a route with its context, has f run once the response
// was written whole, to a connection or to a request's body. f must be brief. It
// never runs when the peer went away before, or got an error.
func OnWritten(ctx context.Context, f func()) {
	if register, ok := ctx.Value(writtenKey{}).(func(func())); ok {
		register(f)
	}
}

func withWritten(ctx context.Context, register func(func())) context.Context {
	return context.WithValue(ctx, writtenKey{}, register)
}
