package jsonrpc

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "rewrite the transcripts in testdata")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestWire replays transcripts between a raw peer and a Conn. In a transcript
// "> " is a line from the peer, "< " one from the Conn; the other lines are
// "call NAME METHOD PARAMS", "stream NAME METHOD PARAMS", "notify METHOD
// PARAMS" and "cancel NAME" for what our side does, "pass DURATION" for time,
// "eof" for the peer's end, and "= " for what our side saw.
func TestWire(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for i, f := range a.Files {
				synctest.Test(t, func(t *testing.T) {
					got := replay(t, string(f.Data))
					if *update {
						a.Files[i].Data = []byte(got)
					} else if diff := cmp.Diff(string(f.Data), got); diff != "" {
						t.Errorf("%s (-want +got):\n%s", f.Name, diff)
					}
				})
			}
			if *update {
				if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// transcript collects what happens, from any goroutine. Within one step the
// wire comes before what our side saw: those two have no order.
type transcript struct {
	mu         sync.Mutex
	buf        bytes.Buffer
	wire, seen []string
}

func (tr *transcript) add(format string, args ...any) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	line := fmt.Sprintf(format, args...)
	if len(line) > 300 {
		line = fmt.Sprintf("%s… (%d bytes)", line[:78], len(line))
	}
	if strings.HasPrefix(line, "<") {
		tr.wire = append(tr.wire, line)
	} else {
		tr.seen = append(tr.seen, line)
	}
}

// step ends a step that began with the script's line.
func (tr *transcript) step(line string) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for _, l := range slices.Concat([]string{line}, tr.wire, tr.seen) {
		tr.buf.WriteString(l + "\n")
	}
	tr.wire, tr.seen = nil, nil
}

func replay(t *testing.T, script string) string {
	ours, theirs := net.Pipe()
	tr := &transcript{}
	var wg sync.WaitGroup
	wg.Go(func() {
		lines := bufio.NewReader(theirs)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				tr.add("< EOF")
				return
			}
			tr.add("< %s", strings.TrimSuffix(line, "\n"))
		}
	})
	c := NewConn(Lines(ours), sample(tr), Options{MaxCalls: 4})
	cancels := map[string]context.CancelFunc{}
	for line := range strings.Lines(script) {
		line = strings.TrimSuffix(line, "\n")
		verb, rest, _ := strings.Cut(line, " ")
		if verb == "<" || verb == "=" {
			continue
		}
		switch verb {
		case "", "#":
		case ">":
			// A closed Conn may not take the line; the transcript shows it.
			if _, err := theirs.Write([]byte(expand(rest) + "\n")); err != nil {
				tr.add("= not taken")
			}
		case "eof":
			_ = theirs.Close()
		case "pass":
			d, err := time.ParseDuration(rest)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(d) // of the bubble's clock
		case "cancel":
			cancels[rest]()
		case "notify":
			method, params, _ := strings.Cut(rest, " ")
			if err := c.Notify(t.Context(), method, json.RawMessage(expand(params))); err != nil {
				tr.add("= notify: %v", err)
			}
		case "call", "stream":
			parts := strings.SplitN(rest, " ", 3)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			cancels[parts[0]] = cancel
			wg.Go(func() {
				var result json.RawMessage
				var err error
				if verb == "call" {
					err = c.Call(ctx, parts[1], json.RawMessage(parts[2]), &result)
				} else {
					err = c.Stream(ctx, parts[1], json.RawMessage(parts[2]), func(item json.RawMessage) error {
						tr.add("= %s item %s", parts[0], item)
						if string(item) == `"enough"` {
							return errors.New("had enough")
						}
						return nil
					})
				}
				tr.add("= %s: %s %v", parts[0], result, err)
			})
		default:
			t.Fatalf("unknown verb %q", verb)
		}
		synctest.Wait()
		tr.step(line)
	}
	c.Close(CloseNormal, "")
	_ = theirs.Close()
	c.Wait()
	wg.Wait()
	return tr.buf.String()
}

// expand writes "{{x*N}}" as N times x, for frames too long for a transcript.
func expand(s string) string {
	for {
		before, rest, ok := strings.Cut(s, "{{")
		if !ok {
			return s
		}
		spec, after, _ := strings.Cut(rest, "}}")
		text, n, _ := strings.Cut(spec, "*")
		var times int
		_, _ = fmt.Sscan(n, &times)
		s = before + strings.Repeat(text, times) + after
	}
}

// sample serves the methods the transcripts call.
func sample(tr *transcript) HandlerFunc {
	return func(ctx context.Context, r *Request) (any, error) {
		if !r.IsCall() {
			tr.add("= notice %s %s", r.Method, r.Params)
			return nil, nil
		}
		switch r.Method {
		case "echo":
			return r.Params, nil
		case "big":
			return strings.Repeat("x", MaxFrame), nil
		case "fault":
			return nil, fmt.Errorf("wrapped: %w", &Fault{Code: CodeApplication, Message: "no", Data: json.RawMessage(`{"code":"NO"}`)})
		case "secret":
			return nil, errors.New("a detail that stays here")
		case "peer":
			return nil, &Error{Code: 7, Message: "another peer's words"}
		case "wait":
			<-ctx.Done()
			return nil, ctx.Err()
		case "count":
			for i := range 3 {
				if err := r.Send(ctx, i); err != nil {
					return nil, err
				}
			}
			return struct{}{}, nil
		case "alike":
			if err := r.Send(ctx, map[string]any{"chunk": "x", "more": true}); err != nil {
				return nil, err
			}
			return struct{}{}, nil
		case "long":
			if err := r.Send(ctx, strings.Repeat("é", ChunkText)); err != nil {
				return nil, err
			}
			return struct{}{}, nil
		}
		return nil, Faultf(CodeMethodNotFound, "no method %q", r.Method)
	}
}
