package auth

import (
	"errors"
	"fmt"
	"strings"
)

// Scope is one right.
type Scope uint8

// The rights a token can hold.
const (
	Read Scope = 1 << iota
	Answer
	Ask
	Admin
)

// Scopes is a set of rights.
type Scopes uint8

// The fixed sets: what a login gives and what the local Unix socket gives.
const (
	LoginScopes  = Scopes(Read | Answer | Admin)
	SocketScopes = Scopes(Read | Ask | Admin)
)

// Errors of a set of scopes.
var (
	ErrBadScope  = errors.New("a scope is read, answer, ask or admin")
	ErrNoScope   = errors.New("a token needs at least one scope: read, answer, ask or admin")
	ErrAskAnswer = errors.New("a token cannot hold both ask and answer: an agent must not answer its own questions; create two tokens")
)

// scopeSequence is the order in which scopes are written.
var scopeSequence = [...]struct {
	scope Scope
	name  string
}{{Read, "read"}, {Answer, "answer"}, {Ask, "ask"}, {Admin, "admin"}}

// ParseScopes reads scope names, refusing an unknown name, an empty set and
// the pair ask and answer.
func ParseScopes(names []string) (Scopes, error) {
	var set Scopes
next:
	for _, name := range names {
		for _, s := range scopeSequence {
			if s.name == name {
				set |= Scopes(s.scope)
				continue next
			}
		}
		return 0, fmt.Errorf("unknown scope %q: %w", name, ErrBadScope)
	}
	return set, set.check()
}

func (s Scopes) check() error {
	switch {
	case s == 0:
		return ErrNoScope
	case s.Has(Ask) && s.Has(Answer):
		return ErrAskAnswer
	}
	return nil
}

// Has tells whether the set holds the right itself; no right implies another.
func (s Scopes) Has(scope Scope) bool { return s&Scopes(scope) != 0 }

// Names lists the rights in a fixed order.
func (s Scopes) Names() []string {
	names := make([]string, 0, len(scopeSequence))
	for _, e := range scopeSequence {
		if s.Has(e.scope) {
			names = append(names, e.name)
		}
	}
	return names
}

func (s Scopes) String() string { return strings.Join(s.Names(), " ") }
