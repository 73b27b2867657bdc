// Package sim runs the whole core of the program in virtual time under one
// seed, and checks its promises on every run. All of it is test code.
//
// It owns: a network that delays, stalls and cuts, a disk that lags, fails and
// loses what was not synced, a page around the real client machine, scripted
// people, models and outside agents, and the invariants. It owns nothing that
// the program uses: sessions, agents, the loop, questions, the gateway, the
// peers, outside agents and the client machine are the real ones.
//
// # A run
//
// A seed draws a world (sessions, clients, disk) and then a few dozen moves:
// time passes, often up to a tick before, at or after the next deadline; then a
// person, the network, the disk or the host's process does something. After the
// last move everything heals: the host runs, every client is connected, nothing
// fails any more. What is checked, there or at once:
//
//   - an accepted answer stands in the log exactly once, as a result, or as a
//     reply that is queued, admitted or taken back by a person
//   - no answer is recorded, and none leaves a client, that nobody submitted
//   - a pending result never comes before its deadline, in worlds without
//     suspend and clock steps
//   - a connected client shows what a fresh client shows, and that is what a
//     fresh fold of the log holds
//   - when every client has left, timed asks end at their own deadline
//   - a log on disk is contiguous; after a restart it is balanced
//   - what a person typed is in the card, in storage or in the log, until it is
//     dismissed
//   - no goroutine is left when the host has closed
//
// # Replay
//
// Every choice comes from the seed; the order in which Go runs goroutines that
// are ready at the same instant does not. With one processor (-cpu 1, as make
// sim has it) nearly every failure comes again under its seed, else within a
// few tries:
//
//	go test ./host/internal/sim -run TestSim$ -cpu 1 -seed=N
//
// # Controls
//
// TestControls plants faults through seams (the disk, the network, the emitter,
// the clock, the page's storage) and requires that each is caught.
//
// Limits: the constants of world_test.go.
package sim
