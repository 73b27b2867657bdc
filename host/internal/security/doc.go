// Package security tries every door of a whole host with every wrong key.
//
// It is tests only. The paths and methods come from the host's own tables
// (App.Routes, App.Methods): one without a row here fails the test, so nothing
// is exposed that nobody thought about. What a request should get is written
// down here once more, from the rules and not from the code that applies them.
//
//	gate_test.go    Host × Origin × token × method on every path; headers
//	scope_test.go   token × method of the wire, by POST and by socket
//	socket_test.go  handshakes of other sites, rebound names, bad tokens
//	canary_test.go  secrets in logs, addresses and error bodies
//	cap_test.go     rates, sizes, and listening beyond this machine
package security
