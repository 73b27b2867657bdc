package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestUnixSocket runs the transport over what it is for.
func TestUnixSocket(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	served := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			served <- err
			return
		}
		c := NewConn(Lines(conn), HandlerFunc(func(_ context.Context, r *Request) (any, error) {
			if r.Method == "bye" {
				r.AfterReply(func() { r.Conn().Finish(4401, "bye") })
			}
			return r.Params, nil
		}), Options{})
		<-c.Done()
		c.Wait()
		served <- c.Err()
	}()
	conn, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c := NewConn(Lines(conn), nil, Options{})
	want := strings.Repeat("line\nfeed ", 80_000)
	var got map[string]string
	if err := c.Call(t.Context(), "echo", map[string]string{"a": want}, &got); err != nil || got["a"] != want {
		t.Errorf("echo: got %d bytes, %v", len(got["a"]), err)
	}
	if err := c.Call(t.Context(), "bye", struct{}{}, nil); err != nil {
		t.Errorf("bye: %v", err)
	}
	<-c.Done()
	c.Wait()
	var closed *CloseError
	if err := c.Err(); !errors.As(err, &closed) || closed.Code != 4401 || closed.Local {
		t.Errorf("the client saw %v, want 4401 from the peer", err)
	}
	if err := <-served; !errors.As(err, &closed) || !closed.Local {
		t.Errorf("the server saw %v, want its own close", err)
	}
}

func TestLinesKeepOneFramePerLine(t *testing.T) {
	a, b := net.Pipe()
	out, in := Lines(a), Lines(b)
	go func() { _ = out.Write(t.Context(), []byte("{\n\"a\":\n1}")) }()
	got, err := in.Read(t.Context())
	if want := `{ "a": 1}`; err != nil || string(got) != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := in.Read(ctx); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read past its context: %v", err)
	}
	_ = a.Close()
	_ = b.Close()
}

func TestScreen(t *testing.T) {
	tests := []struct {
		name string
		err  error
		want int
	}{
		{name: "own code", err: &CloseError{Code: 4400, Reason: "PROTOCOL", Local: true}, want: 4400},
		{name: "any other", err: errors.New("not now"), want: ClosePolicy},
	}
	for _, test := range tests {
		for _, call := range []bool{true, false} {
			t.Run(test.name, func(t *testing.T) {
				c, s := pair(t, nil, HandlerFunc(func(_ context.Context, r *Request) (any, error) {
					t.Errorf("%s was served", r.Method)
					return nil, nil
				}), Options{}, Options{Screen: func(*Request) error { return test.err }})
				if call {
					_ = c.Call(t.Context(), "x", nil, nil)
				} else {
					_ = c.Notify(t.Context(), "x", nil)
				}
				<-c.Done()
				var closed *CloseError
				if err := s.Err(); !errors.As(err, &closed) || closed.Code != test.want {
					t.Errorf("got %v, want close code %d", err, test.want)
				}
			})
		}
	}
}

// TestPullAndReply sends calls under ids of the owner's own, one at a time, as
// the writer asks for them.
func TestPullAndReply(t *testing.T) {
	type reply struct {
		ID, Result string
		Code       int
	}
	replies := make(chan reply, 3)
	ids := []string{"a", "b#1", "fail"}
	next := 0
	server := Options{
		Pull: func() [][]byte {
			if next == len(ids) {
				return nil
			}
			next++
			return [][]byte{EncodeCall(StringID(ids[next-1]), "ask", nil)}
		},
		Reply: func(id string, result json.RawMessage, err *Error) {
			r := reply{ID: id, Result: string(result)}
			if err != nil {
				r.Code = err.Code
			}
			replies <- r
		},
	}
	client := HandlerFunc(func(_ context.Context, r *Request) (any, error) {
		id, _ := r.id.Text()
		if id == "fail" {
			return nil, Faultf(CodeApplication, "no")
		}
		return id, nil
	})
	_, s := pair(t, client, nil, Options{}, server)
	s.Wake()
	got := map[string]reply{}
	for range ids {
		r := <-replies
		got[r.ID] = r
	}
	want := map[string]reply{
		"a":    {ID: "a", Result: `"a"`},
		"b#1":  {ID: "b#1", Result: `"b#1"`},
		"fail": {ID: "fail", Code: CodeApplication},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("replies (-want +got):\n%s", diff)
	}
}
