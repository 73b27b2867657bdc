// Package value is one strict JSON document as a tree, and a writer for one.
//
// It exists because the client module may link neither encoding/json nor fmt
// (they cost 200 KB of download), and because every door of this program is
// to refuse the same things: duplicate names, invalid UTF-8, trailing data and
// nesting deeper than [DepthMax]. The parser is its own for the same reason:
// jsontext would cost the module 40 KB of its budget at brotli 11. It is held
// to encoding/json by a fuzz test.
//
// A Value is immutable and safe to share. The zero Value is [Missing]; every
// accessor accepts it, so a chain of Get calls needs one check at its end.
// Numbers keep their literal text, members their order, so a document written
// back holds what was read.
package value
