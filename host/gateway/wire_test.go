package gateway

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

	"meanwhile/host/jsonrpc"
)

var update = flag.Bool("update", false, "rewrite the transcripts in testdata")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestWire replays transcripts between raw clients and a Gateway. The script's
// lines are
//
//	connect C [SCOPES]  C opens a connection; SCOPES are known of it already
//	join C SCOPES       the same, and initialize with a token that has them
//	> C FRAME           a line from C
//	leave C             C closes its end
//	emit E PARAMS       an event; settled by the codes NO and LATE, and by a
//	                    result without a member "bad"
//	cancel E CODE, reemit E
//	post SCOPES BODY    a request without a connection
//	drop SCOPES         revokes the token with these scopes
//	pass DURATION       time goes by
//
// and the rest is written by the test: "< C FRAME" what C got, per client in
// order, and "= " what the events' owner and the request saw.
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
					got := newReplay(t).run(string(f.Data))
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

// scopesAsToken is an Authenticator whose tokens are their own scopes.
type scopesAsToken struct{}

func (scopesAsToken) Authenticate(_ context.Context, token string) (Principal, error) {
	if token == "bad" {
		return Principal{}, errors.New("no such token")
	}
	return tokenOf(token), nil
}

func tokenOf(scopes string) Principal {
	return Principal{TokenID: "token-" + scopes, Label: "label " + scopes, Scopes: strings.Split(scopes, ",")}
}

// sample has one route of each kind.
func sample(cfg Config) *Gateway {
	cfg.Version, cfg.Module = "1.2.3", Module{Path: "/client.wasm", SHA256: "ab12"}
	cfg.Auth = scopesAsToken{}
	cfg.Wire = func(err error) *jsonrpc.Fault {
		var own *Error
		if !errors.As(err, &own) {
			return nil
		}
		data, _ := jsonrpc.Encode(map[string]string{"name": "Sample", "code": own.Code, "field": own.Field})
		return &jsonrpc.Fault{Code: jsonrpc.CodeApplication, Message: own.Message, Data: data}
	}
	g := New(cfg)
	g.Handle("who", "", func(_ context.Context, c *Caller, _ json.RawMessage) (any, error) {
		return map[string]any{"id": c.ClientID, "name": c.Name, "label": c.Label, "token": c.TokenID}, nil
	})
	g.Handle("secret", "admin", func(context.Context, *Caller, json.RawMessage) (any, error) { return "secret", nil })
	g.Handle("break", "", func(context.Context, *Caller, json.RawMessage) (any, error) {
		return nil, errors.New("a detail that stays here")
	})
	g.Stream("count", "read", func(ctx context.Context, c *Caller, _ json.RawMessage, send func(any) error) error {
		for i := range 2 {
			if err := send(i); err != nil {
				return err
			}
		}
		return nil
	})
	g.Stream("hold", "read", func(ctx context.Context, c *Caller, _ json.RawMessage, send func(any) error) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
	return g
}

type replay struct {
	t       *testing.T
	g       *Gateway
	nextID  string
	clients map[string]net.Conn
	events  map[string]*Pending
	wg      sync.WaitGroup

	settling bool // this step is a remote/settle

	mu   sync.Mutex
	wire map[string][]string
	seen []string
}

func newReplay(t *testing.T) *replay {
	r := &replay{t: t, clients: map[string]net.Conn{}, events: map[string]*Pending{}, wire: map[string][]string{}}
	r.g = sample(Config{NewID: func() string { return r.nextID }, MaxClients: 4, MaxEvents: 3, SettleScope: "answer"})
	return r
}

func (r *replay) saw(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, "= "+fmt.Sprintf(format, args...))
}

func (r *replay) got(client, line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wire[client] = append(r.wire[client], "< "+client+" "+line)
}

func (r *replay) run(script string) string {
	var out bytes.Buffer
	for line := range strings.Lines(script) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "< ") || strings.HasPrefix(line, "= ") {
			continue
		}
		r.step(line)
		synctest.Wait()
		out.WriteString(line + "\n")
		for _, l := range r.flush() {
			out.WriteString(l + "\n")
		}
	}
	r.g.Close()
	for _, c := range r.clients {
		_ = c.Close()
	}
	r.wg.Wait()
	return out.String()
}

func (r *replay) flush() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var lines []string
	names := make([]string, 0, len(r.wire))
	for name := range r.wire {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if r.settling {
			// Its response and remote/settled may overtake each other.
			slices.SortStableFunc(r.wire[name], func(a, b string) int {
				return strings.Index(a, `"method"`) - strings.Index(b, `"method"`)
			})
		}
		lines = append(lines, r.wire[name]...)
	}
	lines = append(lines, r.seen...)
	r.wire, r.seen = map[string][]string{}, nil
	return lines
}

func (r *replay) step(line string) {
	verb, rest, _ := strings.Cut(line, " ")
	name, rest, _ := strings.Cut(rest, " ")
	r.settling = strings.Contains(rest, `"remote/settle"`)
	switch verb {
	case "", "#":
	case "connect":
		r.connect(name, rest)
	case "join":
		r.connect(name, "")
		r.write(name, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocol":1,"client":{"name":"`+name+
			`","version":"1"},"token":"`+rest+`"}}`)
	case ">":
		r.write(name, rest)
	case "leave":
		_ = r.clients[name].Close()
	case "emit":
		r.nextID = "event-" + name
		r.events[name] = r.g.Emit(r.event(name, rest))
	case "cancel":
		r.saw("%v", r.events[name].Cancel(rest))
	case "reemit":
		r.saw("%v", r.events[name].Reemit())
	case "post":
		status, body, _ := r.g.Post(r.t.Context(), tokenOf(name), []byte(rest))
		r.saw("%d %s", status, body)
	case "drop":
		r.g.DropToken("token-" + name)
	case "pass":
		d, err := time.ParseDuration(name)
		if err != nil {
			r.t.Fatal(err)
		}
		time.Sleep(d) // of the bubble's clock
	default:
		r.t.Fatalf("unknown verb %q", verb)
	}
}

func (r *replay) event(name, params string) Event {
	return Event{
		Name: "ask", Scope: "answer", Params: json.RawMessage(params), Codes: []string{"NO", "LATE"},
		Check: func(result json.RawMessage) *Refusal {
			if strings.Contains(string(result), "bad") {
				return &Refusal{Code: "BAD", Field: "a.b", Message: "is bad"}
			}
			return nil
		},
		Left: func(client string) { r.saw("%s left by %s", name, client) },
		Settled: func(o Outcome) {
			r.saw("%s settled: %s result=%s code=%s by=%s (%s)", name, o.Kind, o.Result, o.Code, o.Client, o.ClientName)
		},
	}
}

func (r *replay) connect(name, scopes string) {
	ours, theirs := net.Pipe()
	r.clients[name] = theirs
	r.nextID = "client-" + name
	var p Principal
	if scopes != "" {
		p = tokenOf(scopes)
	}
	r.wg.Go(func() {
		err := r.g.Accept(r.t.Context(), jsonrpc.Lines(ours), p)
		_ = ours.Close()
		r.saw("%s ended: %v", name, err)
	})
	r.wg.Go(func() {
		for in := bufio.NewScanner(theirs); in.Scan(); {
			r.got(name, in.Text())
		}
	})
	synctest.Wait()
}

func (r *replay) write(name, line string) {
	if _, err := r.clients[name].Write([]byte(line + "\n")); err != nil {
		r.saw("%s: line not taken", name)
	}
	synctest.Wait()
}
