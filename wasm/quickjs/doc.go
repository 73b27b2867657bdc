// Package quickjs runs JavaScript that a model wrote: QuickJS, compiled to
// WebAssembly, under wazero.
//
// It owns: the embedded engine, compiled at its first use, and machines (VM)
// with a memory of their own that run one program each. It does not own what a program may reach:
// a machine has one function, host, which takes strings and gives a string, and
// the package that makes the machine decides what it does. There is no file,
// socket, module, environment or true randomness in it; there is a clock.
//
// # Why its own package beside wasm/bridge
//
// The bridge runs our own module, which bounds itself, at full speed and from a
// pool. Here the program is not to be trusted: every loop in the compiled engine
// looks whether its context has ended (it makes programs some times slower), and
// a machine is used once. Neither fits the other's runtime.
//
// # How a program ends
//
// By itself; by an exception (*Exception); by its context, whose cause is
// returned: the check stands in every loop of the engine, so that neither
// while(true) nor an endless loop inside a built-in function escapes it; or by
// memory: past its limit an allocation throws inside the program, and the pages of
// the machine bound what the engine itself takes. After an error that is no
// *Exception the machine is gone.
//
//	VM: ready ⇄ running → closed
//
// Concurrency: an Engine is safe for concurrent use. A VM has one owner at a
// time; host is called on the owner's goroutine.
//
// Limits: Options.Memory of a program (the machine takes overhead more),
// stackMax of its calls, StringMax bytes of each string that crosses.
package quickjs
