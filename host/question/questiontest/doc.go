// Package questiontest is for the tests of whoever builds on the question
// service: Native runs the checks of asks and answers as the module would,
// without the module. That both say the same is what wasm/bridge's parity tests
// show. It owns no state.
package questiontest
