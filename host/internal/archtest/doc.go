// Package archtest holds the shape of the program as tests: who may import
// whom, where each third-party module lives, what the client module is free
// of, and how every package is laid out. Each rule carries its reason, which
// the failure prints.
//
// It has no code outside its tests. It reads the source through the go command
// and go/parser and keeps no state. The rules are tables: to allow something
// new, change the table and say why.
package archtest
