// Package httpserver is the HTTP side of the host.
//
// It owns the listener, the routes, the security headers and the static files.
// It does not own what goes over /rpc (the gateway), who is admitted (auth), or
// the built page (web); they are handed in as Options.
//
//	GET  /               the page and its files, from memory
//	GET  /client.wasm    the module that host and page both run
//	GET  /rpc            WebSocket handshake
//	POST /rpc            one unary call with a bearer token
//	POST /auth/login     {code, label?} → {token, id, label, scopes}
//	POST /auth/logout    revokes the bearer's own token
//	GET  /healthz        the process answers
//	GET  /readyz         asks and answers are taken; 503 says why not
//
// Every route, static files too, first passes auth.Gate: Host, then Origin,
// then token. Every response carries the same security headers.
//
// A page of a configured origin, such as an extension or one that embeds the
// inbox, may read the answers (share.go); its preflight is answered without a
// token, the request itself needs what its route needs.
//
// # Listening
//
// Listen refuses an address beyond loopback without TLS: tokens and answers
// would cross the network readable.
//
// # Concurrency
//
// A Server is safe for concurrent use. Each request runs on its own goroutine
// of net/http. Sockets outlive their handler in net/http's eyes, so the server
// counts them: Close ends their context and waits for them.
//
// # Limits
//
// maxConns connections, maxHeader bytes of header, maxCall bytes of a posted
// call, maxLogin bytes of a login; time limits to read a request and to write
// a response. A posted call may run as long as its caller waits.
package httpserver
