// Package sessiontest helps tests that need sessions: an in-memory backend
// that can hold, lose and fail writes, one-line constructors, and the contract
// that every backend passes.
//
//	store := sessiontest.Open(t)
//	log := sessiontest.Create(t, store)
//
// Mem makes every write durable at once, without goroutines, so a store on it
// works inside synctest bubbles. Hold stops that: batches then wait for Sync or
// Release, and Crash gives a backend with the synced ones only.
package sessiontest
