// Package paritytest replays the same transcripts natively, in client.wasm under
// wazero, and (web/e2e) in client.wasm in the browser: the answers must be equal
// byte for byte.
//
// testdata holds pairs:
//
//	NAME.json           what is called, written by hand: a list of
//	                    [export, wall, mono, input]; check and fold ignore the times.
//	                    input is a document, or, for fold, a list of lines
//	NAME.expected.json  a list of {"call","wall","mono","in","out"}: the exact text
//	                    that goes in and the exact text that must come out
//
// The browser test needs the second alone: on one new instance, for each entry
// call the export with the text of "in" and compare the answer with "out".
// projection.json is the exception: a list of {name, header, events, want}, the vectors
// of the userQuestions fold; projection.expected.json is made of it like the others.
//
// go test ./wasm/bridge/paritytest -update writes the expected files from the
// native machine.
package paritytest
