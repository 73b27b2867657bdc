package remotes

import (
	"context"

	"meanwhile/host/gateway"
	"meanwhile/host/notify"
)

type pushKey struct {
	Key string `json:"key"`
}

type pushParams struct {
	Endpoint string `json:"endpoint"`
	Keys     struct {
		P256dh string `json:"p256dh"`
		Auth   string `json:"auth"`
	} `json:"keys"`
}

type endpointParams struct {
	Endpoint string `json:"endpoint"`
}

type pushRemoved struct {
	Removed bool `json:"removed"`
}

type notifyTold struct {
	Told int `json:"told"`
}

// bindNotify lets a browser that may answer subscribe, for as long as its token
// lives, and shows how notifications do.
func bindNotify(g *gateway.Gateway, o Options) {
	unary(g, "push/key", answer, func(context.Context, *gateway.Caller, none) (pushKey, error) {
		return pushKey{o.Notify.Key()}, nil
	})
	unary(g, "push/subscribe", answer, func(_ context.Context, c *gateway.Caller, p pushParams) (none, error) {
		return none{}, o.Notify.Subscribe(c.TokenID, c.Label, notify.Subscription{Endpoint: p.Endpoint, P256dh: p.Keys.P256dh, Auth: p.Keys.Auth})
	})
	unary(g, "push/unsubscribe", answer, func(_ context.Context, c *gateway.Caller, p endpointParams) (pushRemoved, error) {
		if err := need("endpoint", p.Endpoint); err != nil {
			return pushRemoved{}, err
		}
		return pushRemoved{o.Notify.Unsubscribe(c.TokenID, p.Endpoint)}, nil
	})
	unary(g, "notify/status", read, func(context.Context, *gateway.Caller, none) (notify.Report, error) {
		return o.Notify.Report(), nil
	})
	unary(g, "notify/test", answer, func(_ context.Context, c *gateway.Caller, _ none) (notifyTold, error) {
		return notifyTold{o.Notify.Try(c.TokenID)}, nil
	})
}
