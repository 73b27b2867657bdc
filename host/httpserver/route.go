package httpserver

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"meanwhile/host/auth"
)

// policy lets the page load its own files and talk to its own host, and
// nothing else: a question's text that slipped through as markup could neither
// run nor call out.
const policy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'; style-src 'self'; " +
	"img-src 'self' data:; manifest-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'none'"

func (s *Server) routes() []Route {
	get := []string{http.MethodGet, http.MethodHead}
	post := []string{http.MethodPost}
	return append([]Route{
		{Path: "/healthz", Methods: get, Handle: func(w http.ResponseWriter, _ *http.Request, _ *auth.Token) { plain(w, http.StatusOK, "ok") }},
		{Path: "/readyz", Methods: get, Handle: s.serveReady},
		{Path: "/auth/login", Methods: post, Handle: s.serveLogin},
		{Path: "/auth/logout", Methods: post, Need: auth.Bearer, Handle: s.serveLogout},
		// One path, two doors: what a request needs depends on its method.
		{Path: "/rpc", Methods: []string{http.MethodGet}, Need: auth.Socket, Long: true, Handle: s.serveSocket},
		{Path: "/rpc", Methods: post, Need: auth.Bearer, Long: true, Handle: s.serveCall},
	}, s.opts.Extra...)
}

// Routes lists every path that is served, files too.
func (s *Server) Routes() []Route {
	list := s.routes()
	for path := range s.static {
		list = append(list, s.staticRoute(path))
	}
	return list
}

func (s *Server) staticRoute(path string) Route {
	return Route{Path: path, Methods: []string{http.MethodGet, http.MethodHead}, Handle: s.serveStatic}
}

// handler looks paths up as they are: a multiplexer would redirect unclean ones
// before the gate has seen the request.
func (s *Server) handler() http.Handler {
	paths, folders := map[string]http.Handler{}, map[string]http.Handler{}
	doors := map[string][]Route{}
	for _, route := range s.routes() {
		doors[route.Path] = append(doors[route.Path], route)
	}
	for path, routes := range doors {
		if strings.HasSuffix(path, "/") {
			folders[path] = s.guard(routes)
		} else {
			paths[path] = s.guard(routes)
		}
	}
	static := s.guard([]Route{s.staticRoute("")})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.secure(w.Header())
		if h := paths[r.URL.Path]; h != nil {
			h.ServeHTTP(w, r)
			return
		}
		for folder, h := range folders {
			if strings.HasPrefix(r.URL.Path, folder) {
				h.ServeHTTP(w, r)
				return
			}
		}
		static.ServeHTTP(w, r)
	})
}

func (s *Server) secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=(), payment=(), usb=()")
	h.Set("Cache-Control", "no-store")
	if s.opts.TLS {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// guard admits a request before anything of it is read. Admission comes before
// the method, so that a foreign page learns nothing from the difference. A
// method that no door takes is refused at the first.
func (s *Server) guard(doors []Route) http.Handler {
	var methods []string
	for _, door := range doors {
		methods = append(methods, door.Methods...)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		route := doors[0]
		if s.shareWith(w.Header(), r) && preflight(r) {
			s.servePreflight(w, r, methods)
			return
		}
		if i := slices.IndexFunc(doors, func(d Route) bool { return slices.Contains(d.Methods, r.Method) }); i > 0 {
			route = doors[i]
		}
		say := route.Refuse
		if say == nil {
			say = plain
		}
		token, err := s.opts.Gate.Admit(r, route.Need)
		if err != nil {
			s.refuse(w, r, err, say)
			return
		}
		if !slices.Contains(route.Methods, r.Method) {
			w.Header().Set("Allow", strings.Join(methods, ", "))
			say(w, http.StatusMethodNotAllowed, "this path takes "+strings.Join(methods, " or "))
			return
		}
		if !route.Long {
			deadline(w, writeWithin)
		}
		route.Handle(w, r, token)
	})
}

func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error, say func(http.ResponseWriter, int, string)) {
	status := http.StatusForbidden
	var refusal *auth.Refusal
	if errors.As(err, &refusal) {
		status = refusal.Status
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="meanwhile"`)
	}
	s.opts.Log.Info("request refused", "status", status, "path", r.URL.Path, "host", r.Host, "origin", r.Header.Get("Origin"), "remote", r.RemoteAddr)
	say(w, status, err.Error())
}

func (s *Server) serveSocket(w http.ResponseWriter, r *http.Request, token *auth.Token) {
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		w.Header().Set("Upgrade", "websocket")
		plain(w, http.StatusUpgradeRequired, "connect with WebSocket, or POST one call")
		return
	}
	if !s.enter() {
		plain(w, http.StatusServiceUnavailable, "the host is stopping")
		return
	}
	defer s.sockets.Done()
	// The context of a hijacked request ends with its handler only, and ours
	// ends with the server too.
	s.opts.Socket(s.ctx, w, r, token)
}

func (s *Server) serveCall(w http.ResponseWriter, r *http.Request, token *auth.Token) {
	body, ok := readJSON(w, r, maxCall)
	if !ok {
		return
	}
	status, response, written := s.opts.Post(r.Context(), *token, body)
	deadline(w, writeWithin)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if _, err := w.Write(response); err == nil && http.NewResponseController(w).Flush() == nil {
		written()
	}
}

func (s *Server) serveLogin(w http.ResponseWriter, r *http.Request, _ *auth.Token) {
	body, ok := readJSON(w, r, maxLogin)
	if !ok {
		return
	}
	var in struct {
		Code  string `json:"code"`
		Label string `json:"label"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		plain(w, http.StatusBadRequest, "send {\"code\": \"…\"}")
		return
	}
	remote, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		remote = r.RemoteAddr
	}
	text, token, err := s.opts.Codes.Redeem(remote, in.Code, in.Label)
	var rate *auth.RateError
	switch {
	case errors.As(err, &rate):
		w.Header().Set("Retry-After", strconv.Itoa(int(rate.RetryAfter/time.Second)+1))
		plain(w, http.StatusTooManyRequests, err.Error())
		return
	case errors.Is(err, auth.ErrBadCode):
		plain(w, http.StatusUnauthorized, err.Error())
		return
	case errors.Is(err, auth.ErrBadLabel), errors.Is(err, auth.ErrTooManyTokens):
		plain(w, http.StatusBadRequest, err.Error())
		return
	case err != nil:
		s.opts.Log.Error("login", "error", err)
		plain(w, http.StatusInternalServerError, "the token could not be stored")
		return
	}
	s.opts.Log.Info("login", "token", token.ID, "label", token.Label, "remote", remote)
	sendJSON(w, map[string]any{"token": text, "id": token.ID, "label": token.Label, "scopes": token.Scopes.Names()})
}

func (s *Server) serveLogout(w http.ResponseWriter, _ *http.Request, token *auth.Token) {
	if err := s.opts.Gate.Tokens.Revoke(token.ID); err != nil && !errors.Is(err, auth.ErrNoToken) {
		s.opts.Log.Error("logout", "token", token.ID, "error", err)
		plain(w, http.StatusInternalServerError, "the token could not be revoked")
		return
	}
	sendJSON(w, map[string]any{"revoked": token.ID})
}

func (s *Server) serveReady(w http.ResponseWriter, _ *http.Request, _ *auth.Token) {
	if err := s.opts.Ready(); err != nil {
		s.opts.Log.Warn("not ready", "reason", err)
		plain(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	plain(w, http.StatusOK, "ok")
}

// readJSON reads a whole JSON body, or answers why not.
func readJSON(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, bool) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		plain(w, http.StatusUnsupportedMediaType, "send Content-Type: application/json")
		return nil, false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		plain(w, http.StatusRequestEntityTooLarge, "the body is over "+strconv.FormatInt(limit, 10)+" bytes")
		return nil, false
	case err != nil:
		plain(w, http.StatusBadRequest, "the body did not arrive whole")
		return nil, false
	}
	return body, true
}

func sendJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	// The header is out: an error here is a client that left.
	_ = json.NewEncoder(w).Encode(v)
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	io.WriteString(w, text+"\n")
}

// deadline bounds the writing of a response. A writer without deadlines, as in
// tests, is left alone.
func deadline(w http.ResponseWriter, within time.Duration) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(within))
}
