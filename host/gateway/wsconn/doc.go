// Package wsconn carries JSON-RPC frames over a WebSocket: one message per text
// frame, subprotocol meanwhile.v1.
//
// Owns: the upgrade, the dial, the read limit, protocol pings every PingEvery,
// and close codes with their reasons. It is the only package that knows the
// WebSocket library.
//
// Does not own: which origin may connect (Config.CheckOrigin), who the peer is,
// what a message means; when a peer counts as dead (package jsonrpc asks it by
// a call, because browsers answer protocol pings for a frozen page).
//
// States: open → closing (a code was sent; the peer has closeGrace to answer)
// → closed. A peer that sends a binary frame, or one over jsonrpc.MaxFrame, is
// closed with the code for that.
//
// Concurrency: Read by one goroutine, Write by another, Close by any; these are
// the two pumps of a jsonrpc.Conn. A timer sends the pings. Compression is off,
// so a frame is as large as it says.
package wsconn
