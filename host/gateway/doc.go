// Package gateway lets clients call this host and carries its events to them.
// It is generic: it knows routes, scopes, clients and pending events, and no
// word, timer, field or branch of any business.
//
// Owns: the table of routes and their scopes, the first exchange with a client
// (initialize), the set of connected clients, every pending Remote Event and
// its deliveries.
//
// Does not own: sockets (wsconn), who holds which token (Config.Auth), the
// names of errors on the wire (Config.Wire), what an event means (its owner).
//
// # Clients
//
// connected → initializing → ready → gone. The first message must be
// initialize, within InitTimeout. Another protocol number closes with
// CloseProtocol (4400), a token that is not good with CloseToken (4401); both
// tell a client to stop trying, and the call is answered with the reason first.
// Calls that come behind initialize wait for it. A ready client first gets
// every pending event it has the scope for, then "remote/synced" {eventIds};
// with very many the params come in chunks, see package jsonrpc.
//
// A posted call has no connection: it ends with its request, and with its token.
//
// # Events
//
//	pending ──settle, Cancel──▶ ended
//	pending ──last delivery delegates──▶ dormant ──Reemit──▶ pending
//
// Emit makes an event pending. Each client with its scope, connected now or
// later, is called with the event's name and params plus the eventId: one
// delivery per client, started in connection order, all open at once. With no
// client the event waits. Per response:
//
//   - a result that passes Check, or an error whose data.code is one of Codes,
//     settles the event: the first one does, later ones are dropped
//   - a result that fails Check settles nothing; that client is called again
//     with refused, and its delivery stays
//   - the code NEXT delegates: this delivery ends. If no client still has or
//     awaits one, the event is dormant and its outcome Unhandled. Reemit makes
//     it pending again under the same id, for clients that did not delegate it
//   - any other error ends the delivery as if the client had left
//
// A client that leaves takes its delivery with it and delegates nothing.
// "remote/settle" brings the same outcomes by another road, POST included; its
// error member has the form of a JSON-RPC error. When an event settles or is
// cancelled, every client that had it, the winner too, is told
// "remote/settled" first, and then an open call is cancelled by
// "$/cancelRequest".
//
// # Delivery policy
//
// Pending events stand in one list; a client holds its place in it and no copy.
// Its writer pulls the next delivery when the socket takes one, so 100,000
// pending events cost nothing per client, and there is no goroutine per event.
// Settlements are queued per client and never dropped: a client that is
// MaxLag of them behind is closed as too slow and finds the truth when it
// comes back. Events are delivered in the order of Emit; a settlement comes
// before later deliveries. A client must be able to hold as many open calls as
// there are pending events: one that refuses a delivery as too many has failed
// it, and gets it again only when it connects again.
//
// # Concurrency
//
// All state is behind update; frames are encoded, checks run and callbacks
// called after unlock. Check, Left and Settled of one event may run at the
// same time on several goroutines; Check and Left run on the reader of the
// client concerned and must be bounded. Settled runs once per emission, on the
// goroutine that settled it; Cancel calls it before it returns. Close ends the
// connections and settles nothing.
package gateway
