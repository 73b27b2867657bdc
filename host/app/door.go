package app

import (
	"context"
	"net/http"

	"meanwhile/host/auth"
	"meanwhile/host/gateway"
	"meanwhile/host/httpapi"
	"meanwhile/host/httpserver"
	"meanwhile/host/mcpserver"
	"meanwhile/host/remotes"
)

// doors are the ways in for programs beside /rpc.
func (a *App) doors() []httpserver.Route {
	mcp := mcpserver.NewHTTP(Version, nil)
	api := httpapi.New(httpapi.Options{
		Call: func(ctx context.Context, token auth.Token, method string, params, result any) (func(), error) {
			return a.gateway.Call(ctx, remotes.Principal(token), method, params, result)
		},
		Sessions: a.sessions, EventOf: a.eventOf, Live: a.tokens.Live,
	})
	routes := []httpserver.Route{{
		Path: "/mcp", Methods: []string{http.MethodPost}, Need: auth.Bearer, Long: true,
		Handle: func(w http.ResponseWriter, r *http.Request, token *auth.Token) {
			if !token.Scopes.Has(auth.Ask) {
				http.Error(w, "this door needs a token with the scope ask: make one with `meanwhile token create --scope ask`", http.StatusForbidden)
				return
			}
			mcp.Serve(w, r, token.ID, caller{a.gateway, remotes.Principal(*token)})
		},
	}, {
		Path: httpapi.Root, Methods: []string{http.MethodGet, http.MethodPost, http.MethodDelete}, Need: auth.Bearer, Long: true,
		Handle: api.Serve, Refuse: httpapi.Refuse,
	}}
	numbers := a.metrics.Handler()
	routes = append(routes, httpserver.Route{
		Path: "/metrics", Methods: []string{http.MethodGet}, Need: auth.Bearer,
		Handle: func(w http.ResponseWriter, r *http.Request, token *auth.Token) {
			if !token.Scopes.Has(auth.Read) {
				http.Error(w, "this door needs a token with the scope read: make one with `meanwhile token create --scope read`", http.StatusForbidden)
				return
			}
			numbers.ServeHTTP(w, r)
		},
	})
	for _, path := range api.Documents() {
		routes = append(routes, httpserver.Route{
			Path: path, Methods: []string{http.MethodGet, http.MethodHead}, Handle: api.ServeDocument, Refuse: httpapi.Refuse,
		})
	}
	return routes
}

// Routes lists the paths that the host serves, and Methods what may be called
// over /rpc, for whoever checks them all.
func (a *App) Routes() []httpserver.Route { return a.server.Routes() }
func (a *App) Methods() []gateway.Route   { return a.gateway.Routes() }

// eventOf names the event of an open ask, for who answers it without a
// connection of its own.
func (a *App) eventOf(sessionID, callID string) (string, bool) {
	w, ok := a.questions.Lookup(sessionID, callID)
	if !ok {
		return "", false
	}
	return w.EventID(), true
}

// caller makes calls as the owner of a token.
type caller struct {
	gateway   *gateway.Gateway
	principal gateway.Principal
}

func (c caller) Call(ctx context.Context, method string, params, result any) error {
	_, err := c.gateway.Call(ctx, c.principal, method, params, result)
	return err
}
