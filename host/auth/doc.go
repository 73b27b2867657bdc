// Package auth decides who may talk to this host.
//
// It owns access tokens, their scopes, one-time login codes and the admission
// of HTTP requests (Host, then Origin, then token). It does not own sockets,
// routes or the storage medium: Store is a small key-value interface that the
// caller binds to the session store.
//
// # Tokens
//
// A token is shown once, when it is made. Only the SHA-256 of its secret is
// kept; the secret has 256 random bits, so a plain hash is enough. A token is
// live from Create (or Redeem) until Revoke; whoever registered by OnRevoke is
// then told, which is how an open connection is dropped.
//
// # Scopes
//
//	read    follow sessions
//	answer  answer what an agent asks
//	ask     open sessions and ask in them, for an agent
//	admin   drive and manage sessions and tokens
//
// No token holds both ask and answer, so an agent cannot answer itself, and
// admin implies neither. A login gives read, answer and admin; the Unix socket
// of the data directory gives read, ask and admin.
//
// # Login codes
//
// A code is issued, then redeemed once or expired (CodeLife). Codes live in
// memory only, as hashes. Redeem is limited to redeemBurst attempts for each
// remote address, refilled one every redeemEvery.
//
// # Requests
//
// Gate.Admit checks in this order and stops at the first refusal:
//
//  1. Host: a loopback name or a configured host. A page of another name that
//     resolves to this machine (DNS rebinding) carries its own name here.
//  2. Origin: when present, the page must come from the very host it talks to,
//     or from a configured origin; "null" is never one. Browsers send Origin
//     with every WebSocket handshake and every POST, so a missing Origin there
//     means a program, and a program must show a bearer token. Programs on
//     this machine may use the Unix socket instead, which never comes here.
//     A plain GET needs no Origin, but one that a foreign page starts for
//     anything but a navigation is refused (Sec-Fetch-Site).
//  3. Token, where the route wants one.
//
// # Concurrency and limits
//
// Tokens, Codes and Gate are safe for concurrent use. Revoke functions run
// after the lock is released. Limits: MaxTokens tokens, MaxLabel bytes of label,
// maxCodes outstanding codes, maxRemotes addresses in the login limiter.
package auth
