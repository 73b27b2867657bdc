// Package mcpserver lets agents ask through MCP: over the standard streams of a
// process that the agent's program starts, and over HTTP on the host's listener.
//
// It owns: the four tools, their schemas and the words of their results, how
// long a call may stay open in which client, and which messages a result has
// carried that the client has not acknowledged. It does not own asks, replies
// or sessions: each tool makes the calls of an outside agent (session/open,
// userQuestions/*, inbox/*) on a Host, which is a connection to the running host
// for Serve and the gateway itself for HTTP.
//
//	ask_user_question  {questions, timeout?, request_id?}
//	await_answer       {callId}
//	check_inbox        {acknowledge?}
//	withdraw_question  {callId}
//
// # Sessions
//
// One agent program in one working directory is one session, found by its key,
// so a reply that comes after the program ended reaches the next one started
// there. Two that run at once in one directory share it; a key of their own
// parts them. Over HTTP the working directory is not known: the key comes from
// the header Meanwhile-Key, or from ?key= in the address.
//
// # Calls
//
// A call stays open for the client's limit less a margin, or until the question
// is settled or its window is over. What ends the call ends nothing else. A call
// without a request_id gets one that stays the same while its questions are not
// settled: a client that was cut and sends the same questions again meets the
// same ask. MCP itself has nothing to know a repeated call by.
//
// # Messages
//
// Everything that waits for the agent rides on the next result of any tool.
//
//	waiting → carried → written → acknowledged
//
// waiting: claimed from the host. carried: in a result that is being returned.
// written: that result went out whole. acknowledged: the client made another
// call after it, without cancelling the one that carried it; only then is the
// host told. A cancelled call, or one whose response could not be written, gives
// its messages back to waiting. A process that dies acknowledges nothing: its
// leases end with its connection, and the host hands the messages over again.
//
// HTTP calls have no process to know them by. With the header Meanwhile-Holder,
// drawn at random by each process, the same rule holds; without it only
// check_inbox with acknowledge does, and messages come again when their lease is
// over.
//
// # Forms
//
// A client that declares elicitation can be given the question as a form, beside
// the page and every other client; the first answer wins, and the form goes when
// another was first. Asking gives no right to answer, so this is off until a
// person makes a token with the scope answer and hands it to the process
// (MEANWHILE_ANSWER_TOKEN). The answer then comes in as any client's: over a
// connection of its own, checked like every other, under that token's label.
// Whether a form was really shown to a person is the client's word, and a token
// in an environment can be read by what runs there; who does not trust a client
// with that gives it none. A form that is declined or dismissed answers nothing.
// A form whose window ends stays, and what comes of it is a late answer.
//
// Only over standard streams, and only in the older protocol: the newer one has
// no form beside a running call. There it would end the call, and an agent could
// not go on after the question's window until somebody dismissed the form.
//
// # Concurrency and limits
//
// Every call runs on its own goroutine, that of the SDK. A desk's lock is held
// for map work only. See the constants for limits; a line or a body is at most
// bodyMax bytes.
package mcpserver
