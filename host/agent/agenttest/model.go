package agenttest

import (
	"context"
	"iter"
	"slices"
	"sync"

	"meanwhile/host/llm"
)

// Reply is what a model does with one request.
type Reply func(ctx context.Context, r llm.Request, yield func(llm.Chunk, error) bool)

// Model is a scripted llm.Provider that remembers its requests.
type Model struct {
	respond func(n int, r llm.Request) Reply

	mu       sync.Mutex
	requests []llm.Request
}

// Script replies to the requests in order, and fails those beyond.
func Script(replies ...Reply) *Model {
	return Respond(func(n int, _ llm.Request) Reply {
		if n < len(replies) {
			return replies[n]
		}
		return Fail(&llm.Error{Kind: llm.KindRequest, Message: "the script has no more replies"})
	})
}

// Respond replies to the n-th request, from 0, as respond says.
func Respond(respond func(n int, r llm.Request) Reply) *Model { return &Model{respond: respond} }

// Name is "script".
func (m *Model) Name() string { return "script" }

// Stream plays the reply to one request.
func (m *Model) Stream(ctx context.Context, r llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		m.mu.Lock()
		n := len(m.requests)
		m.requests = append(m.requests, r)
		m.mu.Unlock()
		m.respond(n, r)(ctx, r, yield)
	}
}

// Requests returns the requests so far.
func (m *Model) Requests() []llm.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

// Chunks replies with these chunks and nothing more.
func Chunks(chunks ...llm.Chunk) Reply {
	return func(_ context.Context, _ llm.Request, yield func(llm.Chunk, error) bool) {
		for _, c := range chunks {
			if !yield(c, nil) {
				return
			}
		}
	}
}

// Say replies with a text.
func Say(text string) Reply {
	return Chunks(llm.Chunk{Kind: llm.Text, Text: text}, llm.Chunk{Kind: llm.Finish, Reason: llm.FinishStop})
}

// Call is one tool call of a reply.
func Call(id, name, arguments string) llm.Chunk {
	return llm.Chunk{Kind: llm.ToolCallDelta, CallID: id, Name: name, Arguments: arguments}
}

// Use replies with tool calls.
func Use(calls ...llm.Chunk) Reply {
	for i := range calls {
		calls[i].Index = i
	}
	return Chunks(append(slices.Clone(calls), llm.Chunk{Kind: llm.Finish, Reason: llm.FinishToolCalls})...)
}

// Fail fails after these chunks.
func Fail(err error, before ...llm.Chunk) Reply {
	return func(ctx context.Context, r llm.Request, yield func(llm.Chunk, error) bool) {
		goOn := true
		Chunks(before...)(ctx, r, func(c llm.Chunk, err error) bool { goOn = yield(c, err); return goOn })
		if goOn {
			yield(llm.Chunk{}, err)
		}
	}
}

// Hang sends these chunks and then nothing, until the call is cancelled.
func Hang(before ...llm.Chunk) Reply {
	return func(ctx context.Context, r llm.Request, yield func(llm.Chunk, error) bool) {
		Fail(nil, before...)(ctx, r, func(c llm.Chunk, err error) bool {
			if c.Kind == 0 {
				<-ctx.Done()
				err = &llm.Error{Kind: llm.KindAborted, Err: context.Cause(ctx)}
			}
			return yield(c, err)
		})
	}
}

// After waits for a signal and then replies; cancelled, it fails.
func After(signal <-chan struct{}, then Reply) Reply {
	return func(ctx context.Context, r llm.Request, yield func(llm.Chunk, error) bool) {
		select {
		case <-signal:
			then(ctx, r, yield)
		case <-ctx.Done():
			yield(llm.Chunk{}, &llm.Error{Kind: llm.KindAborted, Err: context.Cause(ctx)})
		}
	}
}
