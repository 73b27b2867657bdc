//go:build !linux

package question

import "time"

// asleep is not known here: a sleep shows only where the system's monotonic
// clock counts it.
func asleep() time.Duration { return 0 }
