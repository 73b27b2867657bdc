// Package hosttest starts whole hosts inside a test and talks to them as their
// clients do: over the WebSocket with a token, and over the Unix socket.
//
//	h := hosttest.Start(t, hosttest.Options{Script: script})
//	person := h.Connect("desk", "read", "answer", "admin")
//	ask := person.Next(t) // the next question that the host sends
//
// It owns the temporary directory, the host's life and its clients. Restart
// stops a host and starts another on the same data, as an upgrade would. Each
// client keeps the host's calls until the test takes them, so a test decides
// when and what it answers. Everything ends with the test.
package hosttest
