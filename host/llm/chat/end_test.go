package chat_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"meanwhile/host/llm"
	"meanwhile/host/llm/chat"
	. "meanwhile/host/llm/llmtest"
)

func TestIdle(t *testing.T) {
	tests := []struct {
		name  string
		steps []Step
		want  time.Duration // when it fails
	}{
		{name: "nothing at all", steps: []Step{Stall()}, want: time.Minute},
		{name: "silence after text", steps: []Step{Wait(50 * time.Second), Text("a"), Stall()}, want: 110 * time.Second},
		{name: "a comment starts it over", steps: []Step{Wait(59 * time.Second), KeepAlive(), Stall()}, want: 119 * time.Second},
		{name: "an event without a chunk starts it over", steps: []Step{Wait(59 * time.Second), Data(`{"choices":[]}`), Stall()}, want: 119 * time.Second},
		{name: "comments for ever", steps: forever(KeepAlive()), want: 10 * time.Minute},
		{name: "empty events for ever", steps: forever(Data(`{"choices":[{"delta":{"content":""}}]}`)), want: 10 * time.Minute},
		{name: "a chunk starts the progress limit over", steps: append([]Step{Wait(30 * time.Second), Text("a")}, forever(KeepAlive())...), want: 10*time.Minute + 30*time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := Pipe(t, Stream(tt.steps...))
				c := client(t, s, func(c *chat.Config) { c.Idle, c.Progress = time.Minute, 10*time.Minute })
				begin := time.Now()
				_, err := llm.Collect(c.Stream(t.Context(), hello))
				if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != llm.KindIdle {
					t.Fatalf("got %v, want %v", err, llm.KindIdle)
				}
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Error("is not a deadline")
				}
				if got := time.Since(begin); got != tt.want {
					t.Errorf("failed after %v, want %v", got, tt.want)
				}
				<-s.Gone() // the body was closed: the server saw the client leave
			})
		})
	}
}

func forever(s Step) []Step {
	var steps []Step
	for range 1000 {
		steps = append(steps, Wait(20*time.Second), s)
	}
	return steps
}

func TestIdleBeforeTheHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		c, err := chat.New(chat.Config{BaseURL: "http://x.test", Idle: time.Minute, HTTP: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			defer close(stop)
			<-r.Context().Done()
			return nil, context.Cause(r.Context())
		})}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = llm.Collect(c.Stream(t.Context(), hello))
		if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != llm.KindIdle {
			t.Errorf("got %v, want %v", err, llm.KindIdle)
		}
		<-stop
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestTheConsumersTimeIsNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := Pipe(t, Stream(Text("a"), Text("b"), Finish("stop"), Done()))
		c := client(t, s, func(c *chat.Config) { c.Idle, c.Progress = time.Minute, 10*time.Minute })
		for _, err := range c.Stream(t.Context(), hello) {
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(24 * time.Hour)
		}
	})
}

// A server that says it is done and then holds the connection does not hold
// the turn.
func TestTail(t *testing.T) {
	for name, last := range map[string]Step{"silent": Stall(), "late usage": UsageOnly(1, 1)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := Pipe(t, Stream(Text("a"), Finish("stop"), Wait(2*time.Second), last, Stall()))
				begin := time.Now()
				r, err := llm.Collect(client(t, s, nil).Stream(t.Context(), hello))
				if err != nil || r.Reason != llm.FinishStop {
					t.Fatalf("got %+v, %v", r, err)
				}
				if got := time.Since(begin); got != 5*time.Second {
					t.Errorf("took %v, want 5s", got)
				}
				if want := map[string]int64{"silent": 11, "late usage": 1}[name]; r.Usage.InputTokens != want {
					t.Errorf("usage %+v, want %d in", r.Usage, want)
				}
				<-s.Gone()
			})
		})
	}
}

func TestAbort(t *testing.T) {
	why := errors.New("the user pressed stop")
	tests := []struct {
		name  string
		reply Reply
		retry int
		at    time.Duration
	}{
		{name: "while streaming", reply: Stream(Text("a"), Stall()), at: 10 * time.Second, retry: -1},
		{name: "before anything", reply: Stream(Stall()), at: 10 * time.Second, retry: -1},
		{name: "while waiting to try again", reply: Reply{Status: 429, Header: http.Header{"Retry-After": {"30"}}}, at: 10 * time.Second, retry: 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := Pipe(t, tt.reply)
				ctx, stop := context.WithCancelCause(t.Context())
				time.AfterFunc(tt.at, func() { stop(why) })
				begin := time.Now()
				_, err := llm.Collect(client(t, s, func(c *chat.Config) { c.Retries = tt.retry }).Stream(ctx, hello))
				e, ok := errors.AsType[*llm.Error](err)
				if !ok || e.Kind != llm.KindAborted || !errors.Is(err, why) {
					t.Errorf("got %v, want %v because of %v", err, llm.KindAborted, why)
				}
				if got := time.Since(begin); got != tt.at {
					t.Errorf("took %v, want %v", got, tt.at)
				}
			})
		})
	}
}

func TestBreakingOffClosesTheBody(t *testing.T) {
	s := Pipe(t, Stream(Text("a"), Stall()))
	for range client(t, s, nil).Stream(t.Context(), hello) {
		break
	}
	<-s.Gone()
}
