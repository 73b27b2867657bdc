// Package jsonrpc is one end of a symmetric JSON-RPC 2.0 connection: both
// sides may call, stream and cancel. It knows frames, not sockets, and methods
// only by name.
//
// Owns: the strict codec of one message, the in-flight calls of both sides,
// the bounded write queue, streams and their chunks, cancellation, and the
// keep-alive. Lines, a transport of one JSON text per line over a net.Conn, is
// here too, for the unix socket.
//
// Does not own: who the peer is and what it may do (package gateway), sockets
// (package wsconn), what a method means.
//
// # Messages
//
// One message per frame and no batches. A frame is refused whole, and the
// connection closed, when it is over MaxFrame, not valid UTF-8 (a lone
// surrogate escape counts), nested deeper than MaxDepth, holds a member twice
// at any depth, or its envelope has a member that JSON-RPC does not name.
// Ids are strings or whole numbers. Params are an object or absent.
//
// A stream is a call whose items come as "$/progress" {token, value} before
// its response. An item over ChunkText goes as {chunk, more} values whose
// joined text is the item; it is applied when more is false. An item that
// merely looks like a chunk goes chunked as well, so no item is mistaken for
// one. A notification over a frame goes the same way, as {chunk, more} params
// of that method. "$/cancelRequest" {id} cancels a call either way; the
// cancelled side answers with CodeCancelled, which the canceller ignores.
//
// # States of a connection
//
// open → (finishing →) ended. Finish lets the queue be written first and takes
// nothing new. It ends once, by Close or Finish, by the peer, by a frame that breaks a
// rule, by a peer that is too slow (CloseSlow) or that left a ping unanswered
// for PingTimeout; Err says which. Then every call of ours fails with
// ErrClosed, every call of the peer has its context cancelled, and the reader
// goes on discarding until the transport reports its end, so that the peer can
// still receive the close code.
//
// # Concurrency
//
// One reader, one writer and one keep-alive goroutine per connection, and one
// per call being served. All in-flight state is one struct behind update;
// nothing is called while it is locked. Notifications, Screen and Reply run on
// the reader, in the order of arrival: they must be brief and must not wait
// for the same connection. Stream callbacks run on the goroutine that called
// Stream. Wait returns when all of them are gone.
//
// The writer takes turns between the queue and Options.Pull, which lets an
// owner of many messages keep them in one place and hand over the next one
// only when the peer has room for it.
//
// A handler that panics takes the process down: a machine that found itself
// impossible must not go on serving.
package jsonrpc
