package sessiontest_test

import (
	"testing"

	"meanwhile/host/session"
	"meanwhile/host/session/sessiontest"
)

func TestMemContract(t *testing.T) {
	sessiontest.Contract(t, func(testing.TB) sessiontest.Disk {
		mem := sessiontest.NewMem()
		return sessiontest.Disk{Open: func(testing.TB) session.Backend {
			mem = sessiontest.NewMem(mem.Batches()...)
			return mem
		}}
	})
}
