// Package id draws the random identifiers of this host: sessions, messages,
// events, clients and calls. They are never counters, so a restart cannot
// hand out one that is already in a log.
package id

import "github.com/google/uuid"

// New returns a random identifier of 36 characters. It panics only when the
// operating system has no randomness to give.
func New() string { return uuid.NewString() }
