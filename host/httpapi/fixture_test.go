package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"meanwhile/host/internal/hosttest"
)

const within = 30 * time.Second

type args = map[string]any

// client calls the API with one token.
type client struct {
	t     *testing.T
	h     *hosttest.Host
	token string
}

// reply is a response, checked against the schema that the document gives it.
type reply struct {
	status int
	kind   string
	raw    []byte

	SessionID string
	CallID    string
	Status    any // of a standing; a problem's is a number
	Answers   []struct {
		ID       string
		Selected []string
		Custom   string
	}
	MessageID   string
	RemainingMs *int64
	Shown       *bool
	Withdrawn   *bool
	Accepted    bool
	State       string
	Messages    []struct{ ID string }
	Admitted    []string
	Sessions    []struct{ ID string }

	Code, Field, Detail string
}

func (c client) try(ctx context.Context, method, path string, body any, header ...string) (reply, error) {
	c.t.Helper()
	var in io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		in = strings.NewReader(b)
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			c.t.Fatal(err)
		}
		in = strings.NewReader(string(raw))
	}
	r, err := http.NewRequestWithContext(ctx, method, c.h.URL("/api/v1/"+path), in)
	if err != nil {
		c.t.Fatal(err)
	}
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return reply{}, err
	}
	out := reply{status: resp.StatusCode, kind: resp.Header.Get("Content-Type"), raw: raw}
	if err := json.Unmarshal(raw, &out); err != nil {
		c.t.Errorf("%s %s: %v: %s", method, path, err, raw)
	}
	if want := "application/json"; resp.StatusCode == 200 && out.kind != want || resp.StatusCode != 200 && out.kind != "application/problem+json" {
		c.t.Errorf("%s %s: %d as %q", method, path, resp.StatusCode, out.kind)
	}
	c.checkSchema(method, path, out)
	return out, nil
}

func (c client) do(method, path string, body any, header ...string) reply {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	out, err := c.try(ctx, method, path, body, header...)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	return out
}

// begin calls and returns what will come.
func (c client) begin(method, path string, body any, header ...string) <-chan reply {
	out := make(chan reply, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		r, err := c.try(ctx, method, path, body, header...)
		if err != nil {
			c.t.Errorf("%s %s: %v", method, path, err)
		}
		out <- r
	}()
	return out
}

type operation struct {
	Responses map[string]struct {
		Ref     string `json:"$ref"`
		Content map[string]struct{ Schema json.RawMessage }
	}
}

type document struct {
	Paths      map[string]map[string]operation
	Components struct{ Schemas map[string]json.RawMessage }
}

func readDocument(t *testing.T) document {
	t.Helper()
	raw, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc document
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// checkSchema holds a response to the document: its status is listed and its
// body is what the schema says.
func (c client) checkSchema(method, path string, r reply) {
	c.t.Helper()
	doc := readDocument(c.t)
	path, _, _ = strings.Cut(path, "?")
	name := "Problem"
	if r.status == http.StatusOK {
		op, ok := find(doc, method, "/api/v1/"+path)
		if !ok {
			c.t.Errorf("%s %s is not in the document", method, path)
			return
		}
		var ref struct {
			Ref string `json:"$ref"`
		}
		if err := json.Unmarshal(op.Responses["200"].Content["application/json"].Schema, &ref); err != nil {
			c.t.Fatal(err)
		}
		name = ref.Ref[strings.LastIndexByte(ref.Ref, '/')+1:]
	}
	defs := map[string]any{}
	for n, s := range doc.Components.Schemas {
		defs[n] = json.RawMessage(strings.ReplaceAll(string(s), "#/components/schemas/", "#/$defs/"))
	}
	raw, err := json.Marshal(map[string]any{"$ref": "#/$defs/" + name, "$defs": defs})
	if err != nil {
		c.t.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(raw, &schema); err != nil {
		c.t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		c.t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(r.raw, &value); err != nil {
		c.t.Errorf("%s %s: %v", method, path, err)
	}
	if err := resolved.Validate(value); err != nil {
		c.t.Errorf("%s %s: %s is no %s: %v", method, path, r.raw, name, err)
	}
}

func find(doc document, method, path string) (operation, bool) {
	for pattern, item := range doc.Paths {
		want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
		same := len(want) == len(got)
		for i := 0; same && i < len(want); i++ {
			same = want[i] == got[i] || strings.HasPrefix(want[i], "{")
		}
		if op, ok := item[strings.ToLower(method)]; same && ok {
			return op, true
		}
	}
	return operation{}, false
}

// frame is one server-sent event.
type frame struct{ event, id, data string }

// frames reads events until f has enough.
func frames(t *testing.T, body io.Reader, f func(frame) bool) {
	t.Helper()
	var at frame
	in := bufio.NewReader(body)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatalf("the stream ended: %v", err)
		}
		line = strings.TrimSuffix(line, "\n")
		name, text, _ := strings.Cut(line, ": ")
		switch {
		case line == "":
			if at != (frame{}) && f(at) {
				return
			}
			at = frame{}
		case name == "event":
			at.event = text
		case name == "id":
			at.id = text
		case name == "data":
			at.data = text
		}
	}
}

// world is a host with an agent, a person and a session of the agent's.
type world struct {
	h       *hosttest.Host
	agent   client
	person  client
	desk    *hosttest.Client
	session string
}

func newWorld(t *testing.T) *world {
	h := hosttest.Start(t, hosttest.Options{})
	ask, _ := h.Token("agent", "ask")
	answer, _ := h.Token("phone", "read", "answer")
	w := &world{h: h, agent: client{t, h, ask}, person: client{t, h, answer}, desk: h.Connect("desk", "read", "answer")}
	w.session = w.agent.do("POST", "sessions", args{"agent": args{"name": "ci"}, "key": "k"}).SessionID
	if w.session == "" {
		t.Fatal("no session")
	}
	return w
}

func (w *world) asks(more ...string) string {
	return strings.Join(append([]string{"sessions/" + w.session + "/asks"}, more...), "/")
}

func store(more args) args {
	in := args{"questions": []args{{"id": "store", "question": "Which store?", "options": []args{{"label": "SQLite"}, {"label": "Postgres, hosted"}}}}}
	for k, v := range more {
		in[k] = v
	}
	return in
}

func answers(selected ...string) args {
	return args{"answers": []args{{"id": "store", "selected": selected}}}
}
