// Package bench measures the real program: asks, answers, restarts, checks and
// folds, each beside a floor that the same run measures.
//
// It is tests only, and asserts nothing but that what was asked and answered is
// there: speed depends on the machine, so figures are printed as ratios to what
// this machine does bare (a WebSocket round trip, a synced Put, the fold
// natively). The host is a process of its own, this test binary in the
// program's place, on a real data directory with fsync on; agents and people
// are connections to its socket. They share the machine's processors with it.
//
//	go test ./host/internal/bench -run TestBench -v -bench-all -timeout 0
//
// The host process ends garbage at SIGUSR1, so that resident memory can be
// compared, and with -profile DIR it leaves a CPU profile there for each part.
package bench
