package mcpserver

import (
	"strings"
	"time"
)

// Limits of calls.
const (
	// HoldMax is the longest hold that the host takes.
	HoldMax = 10 * time.Minute
	// margin is what a client's limit is undercut by: the result must arrive
	// while the client still waits.
	margin = 10 * time.Second
	// progressEvery is how often a waiting call says so.
	progressEvery = 10 * time.Second
	// bodyMax bounds one message of a client, as on every door of the host.
	bodyMax = 1 << 20
)

// patience is how long a client lets a call live, on each of the doors.
type patience struct {
	name        string // part of the name that the client gives itself, in lower case
	stdio, http time.Duration
}

// patient lists the clients whose limit is known. Over HTTP Claude Code wants a
// first byte within a minute, which is not sure to come sooner than the result.
var patient = []patience{
	{"claude", 120 * time.Second, 60 * time.Second},
	{"codex", 300 * time.Second, 300 * time.Second},
	{"gemini", 600 * time.Second, 600 * time.Second},
	{"cursor", 60 * time.Second, 60 * time.Second},
	{"opencode", 60 * time.Second, 60 * time.Second},
}

// limitOf is the limit of a client by its name; the shortest for one not known.
func limitOf(client string, http bool) time.Duration {
	client = strings.ToLower(client)
	for _, p := range patient {
		if strings.Contains(client, p.name) {
			if http {
				return p.http
			}
			return p.stdio
		}
	}
	return time.Minute
}

// holdOf is how long a call of this client stays open; set, when it is not 0,
// is the person's word for the client's limit less the margin.
func holdOf(client string, http bool, set time.Duration) time.Duration {
	if set > 0 {
		return min(set, HoldMax)
	}
	return min(limitOf(client, http)-margin, HoldMax)
}
