package httpserver

import (
	"net/http"
	"strings"

	"meanwhile/host/auth"
)

// shareWith lets a page of a configured origin, such as an extension or a page
// that embeds the inbox, read the answer. The others' pages read nothing: they
// are refused before anything is answered.
func (s *Server) shareWith(h http.Header, r *http.Request) bool {
	h.Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	if !s.opts.Gate.Listed(origin) {
		return false
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	return true
}

// preflight tells a browser's question before a request from an ordinary one.
func preflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
}

// servePreflight answers it. The request itself is admitted when it comes; no
// cookie exists, so none is allowed to be sent.
func (s *Server) servePreflight(w http.ResponseWriter, r *http.Request, methods []string) {
	if _, err := s.opts.Gate.Admit(r, auth.Public); err != nil {
		s.refuse(w, r, err, plain)
		return
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", strings.Join(methods, ", "))
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type")
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
}
