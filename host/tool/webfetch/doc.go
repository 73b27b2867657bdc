// Package webfetch is web_fetch: the tool by which a model reads one public
// page.
//
// It owns: the tool, the guard that keeps it out of private networks, and the
// making of readable text from what a server sends. It does not own what the
// model does with the text; the result says that it is a page's, not a person's.
//
// # The guard
//
// A URL must be http or https, with a host and without credentials; each
// redirect is checked as the first URL is. Whether an address is public is
// decided where it cannot change any more: in the dialer, on the address that is
// about to be connected to, for every connection (none is reused, no proxy is
// asked). What a name resolved to before that does not count. For IPv6 the guard
// lists what is public and refuses the rest; for IPv4 it lists what is not.
//
// # One outcome
//
// fetched, or one error: refused (the guard), timed out, aborted (the turn was
// cancelled), or what went wrong. Timed out and aborted exclude each other: the
// first cause wins. Both end the request wherever it stands, also in the middle
// of a body.
//
// # Text
//
// HTML becomes the markdown of its main content, or of the whole page where no
// such is found or the page is too intricate to look for it; text and JSON stay
// as they are; anything else is refused. Control, escape, bidirectional and
// invisible characters are left out.
//
// Concurrency: runs are independent. Limits: Config, redirectsMax, urlMax,
// headerMax, what a page may have for its main content to be looked for
// (nodesMax, textMax, indentMax), and the nesting that the HTML parser allows.
package webfetch
