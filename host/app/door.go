package app

import (
	"context"
	"net/http"

	"meanwhile/host/auth"
	"meanwhile/host/gateway"
	"meanwhile/host/httpserver"
	"meanwhile/host/mcpserver"
	"meanwhile/host/remotes"
)

// doors are the ways in for programs beside /rpc.
func (a *App) doors() []httpserver.Route {
	mcp := mcpserver.NewHTTP(Version, nil)
	return []httpserver.Route{{
		Path: "/mcp", Methods: []string{http.MethodPost}, Need: auth.Bearer, Long: true,
		Handle: func(w http.ResponseWriter, r *http.Request, token *auth.Token) {
			if !token.Scopes.Has(auth.Ask) {
				http.Error(w, "this door needs a token with the scope ask: make one with `meanwhile token create --scope ask`", http.StatusForbidden)
				return
			}
			mcp.Serve(w, r, token.ID, caller{a.gateway, remotes.Principal(*token)})
		},
	}}
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
