package remotes

import (
	"context"

	"meanwhile/host/auth"
	"meanwhile/host/gateway"
	"meanwhile/host/qr"
)

type tokenParams struct {
	Label  string   `json:"label"`
	Scopes []string `json:"scopes"`
}

type tokenResult struct {
	Token string `json:"token"`
	ID    string `json:"id"`
}

type tokenRow struct {
	ID        string   `json:"id"`
	Label     string   `json:"label"`
	Scopes    []string `json:"scopes"`
	CreatedAt int64    `json:"createdAt"`
	Login     bool     `json:"login,omitempty"`
}

type tokenList struct {
	Tokens []tokenRow `json:"tokens"`
}

type revokeParams struct {
	ID string `json:"id"`
}

type loginResult struct {
	URL string   `json:"url"`
	QR  *qrDrawn `json:"qr,omitempty"` // none for a link that is too long
}

// qrDrawn is a link as a drawing: the path of an SVG whose sides have size units.
type qrDrawn struct {
	Size int    `json:"size"`
	Path string `json:"path"`
}

func drawn(url string) *qrDrawn {
	code, err := qr.Encode(url)
	if err != nil {
		return nil
	}
	return &qrDrawn{Size: code.Size(), Path: code.Path()}
}

func bindTokens(g *gateway.Gateway, o Options) {
	unary(g, "token/create", admin, func(_ context.Context, _ *gateway.Caller, p tokenParams) (tokenResult, error) {
		scopes, err := auth.ParseScopes(p.Scopes)
		if err != nil {
			return tokenResult{}, err
		}
		text, token, err := o.Tokens.Create(p.Label, scopes)
		return tokenResult{Token: text, ID: token.ID}, err
	})
	unary(g, "token/list", admin, func(context.Context, *gateway.Caller, none) (tokenList, error) {
		out := tokenList{Tokens: []tokenRow{}}
		for _, t := range o.Tokens.List() {
			out.Tokens = append(out.Tokens, tokenRow{ID: t.ID, Label: t.Label, Scopes: t.Scopes.Names(), CreatedAt: t.Created.UnixMilli(), Login: t.Login})
		}
		return out, nil
	})
	unary(g, "token/revoke", admin, func(_ context.Context, _ *gateway.Caller, p revokeParams) (none, error) {
		if err := need("id", p.ID); err != nil {
			return none{}, err
		}
		return none{}, o.Tokens.Revoke(p.ID)
	})
	unary(g, "login/create", admin, func(context.Context, *gateway.Caller, none) (loginResult, error) {
		url := o.LoginURL(o.Codes.Issue())
		return loginResult{URL: url, QR: drawn(url)}, nil
	})
}

// Principal is who a token stands for on the wire.
func Principal(t auth.Token) gateway.Principal {
	return gateway.Principal{TokenID: t.ID, Label: t.Label, Scopes: t.Scopes.Names()}
}

// Local is the principal of the Unix socket, which only this user can open.
func Local() gateway.Principal {
	return gateway.Principal{TokenID: "local", Label: "command line", Scopes: auth.SocketScopes.Names()}
}

// Authenticator lets the gateway take tokens in initialize.
func Authenticator(tokens *auth.Tokens) gateway.Authenticator { return authenticator{tokens} }

type authenticator struct{ tokens *auth.Tokens }

func (a authenticator) Authenticate(_ context.Context, text string) (gateway.Principal, error) {
	t, err := a.tokens.Verify(text)
	if err != nil {
		return gateway.Principal{}, err
	}
	return Principal(t), nil
}
