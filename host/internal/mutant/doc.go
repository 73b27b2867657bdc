// Package mutant breaks the program on purpose, one small fault at a time, and
// requires that a named test notices: a promise that no test would miss is none.
// All of it is test code.
//
// It owns the list of faults and the runner. A fault is a snippet of one file
// and what stands there instead. The changed file is laid over the tree with go
// test -overlay, so nothing in the tree is written. The faults that tests plant
// at run time, through seams, are those of the sim package.
//
// # A run
//
//	make mutants
//	make mutants ONLY='claim|token'
//
// First the named tests of each package run as they are: they must pass, or
// their failing would say nothing. Then each fault is put in and they run again.
// It is caught when one of them fails; the list names the first that did. A fault
// that does not compile, or that no test notices, fails the run.
//
// An ordinary go test only checks, quickly, that every snippet still stands
// exactly once in its file and that every named test exists, so that the list
// cannot rot.
//
// # Limits
//
// One fault at a time, one go command at a time; runMax for one of them. A fault
// that makes a test hang is caught by that test's own timeout, testMax.
package mutant
