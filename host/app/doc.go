// Package app is the composition root: it makes one host out of the packages
// below it, in order, and takes it apart in reverse.
//
// It owns the order of starting and stopping, the choice of model and tools,
// and the two listeners. It does not own settings (config), what the wire
// exposes (remotes), or the process: Failed tells its owner to end that.
//
// # States
//
// Start: the data directory is locked and its store opened → every log whose
// last turn never ended is repaired → the client module is compiled → services
// → both listeners → agents with queued messages go on. Only then does Start
// return. A failure on the way undoes what was done.
//
// running → failed: a write to disk failed. What it said is unknown, so the
// process must end; Failed gives the reason, once.
//
// Close: the questions stand still (a stopping host records nothing for them),
// then the sockets end, then the agents, then the store. After a restart the
// same questions are open or continued.
//
// # Concurrency
//
// Start and Close belong to one owner. The rest may be called from anywhere.
// Two apps may run in one process, on different data directories.
package app
