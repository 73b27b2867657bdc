package httpapi

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"meanwhile/host/auth"
	"meanwhile/host/session"
	"meanwhile/shared/event"
	"meanwhile/shared/event/value"
)

// Root is the path that everything here is below.
const Root = "/api/v1/"

// Limits.
const (
	bodyMax     = 1<<20 - 4<<10 // what goes to the wire in one frame, less what is added to it
	keyMax      = 200           // bytes of an Idempotency-Key
	writeWithin = time.Minute   // to take a response, or one event
	keepAlive   = 15 * time.Second
	// answerTries is how often an ask is looked at again that is just being
	// recorded as pending, answerEvery apart.
	answerTries = 20
	answerEvery = 50 * time.Millisecond
	// settledAfter is after how many looks an ask that is neither open nor continued
	// counts as settled.
	settledAfter = 4
)

// CallFunc makes one call of the wire for the owner of a token. Refusals are
// *jsonrpc.Error. written must run once the response went out whole.
type CallFunc func(ctx context.Context, token auth.Token, method string, params, result any) (written func(), err error)

// Sessions is what can be read without a call.
type Sessions interface {
	List() []session.Row
	Follow(ctx context.Context, id string, after *int64, fn func(session.Item) error) error
}

// Options of an API. All are needed.
type Options struct {
	Call     CallFunc
	Sessions Sessions
	// EventOf names the event that carries an open ask; false when it is not open.
	EventOf func(sessionID, callID string) (eventID string, open bool)
	// Live reports whether a token is.
	Live func(tokenID string) bool
}

// API serves the paths below Root.
type API struct {
	o     Options
	files map[string][]byte // public documents by path
}

//go:embed openapi.json
var documents embed.FS

var schemaRef = regexp.MustCompile(`"#/components/schemas/([A-Za-z]+)"`)

// New makes an API. It panics on a document of ours that cannot be read.
func New(o Options) *API {
	raw, err := documents.ReadFile("openapi.json")
	if err != nil {
		panic("httpapi: " + err.Error())
	}
	files := map[string][]byte{Root + "openapi.json": raw}
	var doc struct {
		Components struct{ Schemas map[string]json.RawMessage }
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		panic("httpapi: openapi.json: " + err.Error())
	}
	for name, schema := range doc.Components.Schemas {
		path := Root + "schemas/" + name + ".json"
		// Alone, a schema finds the others beside it.
		text := schemaRef.ReplaceAllString(string(schema), `"$1.json"`)
		head := fmt.Sprintf(`{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":%q,`, path)
		files[path] = []byte(head + strings.TrimPrefix(strings.TrimSpace(text), "{"))
	}
	return &API{o: o, files: files}
}

// Documents lists the paths that need no token.
func (a *API) Documents() (paths []string) {
	for path := range a.files {
		paths = append(paths, path)
	}
	return paths
}

// ServeDocument serves one of Documents.
func (a *API) ServeDocument(w http.ResponseWriter, r *http.Request, _ *auth.Token) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = w.Write(a.files[r.URL.Path]) // the client may have left
}

// Serve answers one admitted request.
func (a *API) Serve(w http.ResponseWriter, r *http.Request, token *auth.Token) {
	if err := a.route(w, r, *token); err != nil {
		if r.Context().Err() != nil {
			return // nobody reads it
		}
		deadline(w)
		problemOf(err).write(w)
	}
}

// visit is one request.
type visit struct {
	*API
	w         http.ResponseWriter
	r         *http.Request
	token     auth.Token
	sessionID string
	callID    string
}

// route finds what a path means. The pattern's holes are filled from the path
// as it was sent, so that an id with a slash in it is still one.
func (a *API) route(w http.ResponseWriter, r *http.Request, token auth.Token) error {
	v := &visit{API: a, w: w, r: r, token: token}
	var parts []string
	for part := range strings.SplitSeq(strings.TrimPrefix(r.URL.EscapedPath(), Root), "/") {
		text, err := url.PathUnescape(part)
		if err != nil {
			return newProblem(http.StatusBadRequest, "BAD_PATH", "", "the path is not escaped as it must be")
		}
		parts = append(parts, text)
	}
	var allowed []string
	for _, route := range routes() {
		if !route.match(parts, v) {
			continue
		}
		if route.method == r.Method {
			return route.serve(v)
		}
		allowed = append(allowed, route.method)
	}
	if allowed != nil {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		return newProblem(http.StatusMethodNotAllowed, "BAD_METHOD", "", "this path takes "+strings.Join(allowed, " or "))
	}
	return newProblem(http.StatusNotFound, "NO_PATH", "", "there is nothing here: see "+Root+"openapi.json")
}

type route struct {
	method, pattern string
	serve           func(*visit) error
}

func routes() []route {
	return []route{
		{http.MethodPost, "sessions", (*visit).open},
		{http.MethodGet, "sessions", (*visit).list},
		{http.MethodGet, "sessions/{sessionId}/events", (*visit).follow},
		{http.MethodPost, "sessions/{sessionId}/asks", (*visit).ask},
		{http.MethodGet, "sessions/{sessionId}/asks/{callId}", (*visit).await},
		{http.MethodDelete, "sessions/{sessionId}/asks/{callId}", (*visit).withdraw},
		{http.MethodPost, "sessions/{sessionId}/asks/{callId}/answer", (*visit).answer},
		{http.MethodPost, "sessions/{sessionId}/inbox/claim", (*visit).claim},
		{http.MethodPost, "sessions/{sessionId}/inbox/admit", (*visit).admit},
	}
}

func (r route) match(parts []string, v *visit) bool {
	pattern := strings.Split(r.pattern, "/")
	if len(pattern) != len(parts) {
		return false
	}
	for i, p := range pattern {
		switch {
		case p == "{sessionId}" && parts[i] != "":
			v.sessionID = parts[i]
		case p == "{callId}" && parts[i] != "":
			v.callID = parts[i]
		case p != parts[i]:
			return false
		}
	}
	return true
}

func (v *visit) open() error {
	body, err := v.body()
	if err != nil {
		return err
	}
	agent := body.Get("agent")
	if agent.Kind() == value.Object && agent.Get("kind").Kind() != value.String {
		body = body.With("agent", agent.With("kind", value.OfString(event.KindExternal)))
	}
	return v.pass("session/open", body)
}

func (v *visit) ask() error {
	body, err := v.body()
	if err != nil {
		return err
	}
	key, err := v.idempotencyKey()
	if err != nil {
		return err
	}
	if key != "" {
		if own, ok := body.Get("requestId").Str(); ok && own != key {
			return newProblem(http.StatusUnprocessableEntity, "BAD_BODY", "requestId", "requestId and Idempotency-Key differ: send one of them")
		}
		body = body.With("requestId", value.OfString(key))
	}
	return v.pass("userQuestions/ask", body.With("sessionId", value.OfString(v.sessionID)))
}

func (v *visit) await() error {
	params := map[string]any{"sessionId": v.sessionID, "callId": v.callID}
	query := v.r.URL.Query()
	if holder := query.Get("holder"); holder != "" {
		params["holder"] = holder
	}
	if text := query.Get("holdMs"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return newProblem(http.StatusUnprocessableEntity, "BAD_BODY", "holdMs", "holdMs must be a whole number of milliseconds")
		}
		params["holdMs"] = n
	}
	return v.pass("userQuestions/await", params)
}

func (v *visit) withdraw() error {
	return v.pass("userQuestions/withdraw", map[string]any{"sessionId": v.sessionID, "callId": v.callID})
}

func (v *visit) claim() error { return v.inbox("inbox/claim") }
func (v *visit) admit() error { return v.inbox("inbox/admit") }

func (v *visit) inbox(method string) error {
	body, err := v.body()
	if err != nil {
		return err
	}
	return v.pass(method, body.With("sessionId", value.OfString(v.sessionID)))
}

// pass makes one call of the wire and gives back its result as it is.
func (v *visit) pass(method string, params any) error {
	if doc, ok := params.(value.Value); ok {
		params = json.RawMessage(doc.Bytes())
	}
	var out json.RawMessage
	written, err := v.o.Call(v.r.Context(), v.token, method, params, &out)
	if err != nil {
		return err
	}
	if v.send(out) {
		written()
	}
	return nil
}

// send writes a result and reports whether it went out whole.
func (v *visit) send(body []byte) bool {
	deadline(v.w)
	v.w.Header().Set("Content-Type", "application/json")
	_, err := v.w.Write(append(body, '\n'))
	return err == nil && http.NewResponseController(v.w).Flush() == nil
}

// body reads an object. No body is an empty one.
func (v *visit) body() (value.Value, error) {
	raw, err := io.ReadAll(http.MaxBytesReader(v.w, v.r.Body, bodyMax))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return value.Value{}, newProblem(http.StatusRequestEntityTooLarge, "TOO_LARGE", "", fmt.Sprintf("the body is over %d bytes: send less at once", bodyMax))
	case err != nil:
		return value.Value{}, newProblem(http.StatusBadRequest, "BAD_BODY", "", "the body did not arrive whole")
	case len(raw) == 0:
		return value.OfObject(), nil
	}
	if kind, _, err := mime.ParseMediaType(v.r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return value.Value{}, newProblem(http.StatusUnsupportedMediaType, "BAD_TYPE", "", "send Content-Type: application/json")
	}
	doc, err := value.Parse(raw)
	if err != nil {
		return value.Value{}, newProblem(http.StatusBadRequest, "BAD_BODY", "", "the body is not the JSON it must be: "+err.Error())
	}
	if doc.Kind() != value.Object {
		return value.Value{}, newProblem(http.StatusUnprocessableEntity, "BAD_BODY", "", "send a JSON object")
	}
	return doc, nil
}

// idempotencyKey reads the header, with or without the quotes of a structured
// field.
func (v *visit) idempotencyKey() (string, error) {
	key := v.r.Header.Get("Idempotency-Key")
	if n := len(key); n > 1 && key[0] == '"' && key[n-1] == '"' {
		key = key[1 : n-1]
	}
	if len(key) > keyMax {
		return "", newProblem(http.StatusUnprocessableEntity, "BAD_BODY", "Idempotency-Key", fmt.Sprintf("send at most %d bytes", keyMax))
	}
	return key, nil
}

// deadline bounds the writing of a response. A writer without deadlines, as in
// tests, is left alone.
func deadline(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeWithin))
}
