package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits.
const (
	MaxTokens = 512 // live tokens; a login past it replaces the oldest login
	MaxLabel  = 80  // bytes of a label
)

const (
	tokenPrefix = "mwt_"
	idBytes     = 8
	secretBytes = 32
)

// Errors callers branch on.
var (
	ErrBadToken      = errors.New("the token is unknown or revoked")
	ErrNoToken       = errors.New("no token has this id")
	ErrTooManyTokens = fmt.Errorf("there are already %d tokens: revoke some first", MaxTokens)
	ErrBadLabel      = fmt.Errorf("a label is 1 to %d bytes of printable text", MaxLabel)
)

// Store keeps token records. A Put or Delete that returns nil is on disk.
// Keys are short ASCII.
type Store interface {
	Put(key string, value []byte) error
	Delete(key string) error
	Each(func(key string, value []byte) error) error
}

// Token describes a live token. Its secret is not part of it.
type Token struct {
	ID      string
	Label   string
	Scopes  Scopes
	Created time.Time
	Login   bool // made by redeeming a login code
}

// record is a stored token.
type record struct {
	Label   string   `json:"label"`
	Scopes  []string `json:"scopes"`
	Created int64    `json:"created"`
	Login   bool     `json:"login,omitempty"`
	Hash    string   `json:"hash"`
}

type entry struct {
	token Token
	hash  [sha256.Size]byte
}

// Tokens is the set of live tokens.
type Tokens struct {
	store Store
	now   func() time.Time

	mu      sync.Mutex
	entries map[string]*entry
	revoked []func(id string)
}

// OpenTokens loads the tokens of the store. now may be nil for the real time.
func OpenTokens(store Store, now func() time.Time) (*Tokens, error) {
	if now == nil {
		now = time.Now
	}
	t := &Tokens{store: store, now: now, entries: map[string]*entry{}}
	err := store.Each(func(key string, value []byte) error {
		var r record
		if err := json.Unmarshal(value, &r); err != nil {
			return fmt.Errorf("token %s: %w", key, err)
		}
		scopes, err := ParseScopes(r.Scopes)
		if err != nil {
			return fmt.Errorf("token %s: %w", key, err)
		}
		e := &entry{token: Token{ID: key, Label: r.Label, Scopes: scopes, Created: time.UnixMilli(r.Created), Login: r.Login}}
		raw, err := hex.DecodeString(r.Hash)
		if err != nil || len(raw) != len(e.hash) {
			return fmt.Errorf("token %s: unreadable hash", key)
		}
		copy(e.hash[:], raw)
		t.entries[key] = e
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("load tokens: %w", err)
	}
	return t, nil
}

// Create makes a token and returns its text, which is not kept anywhere.
func (t *Tokens) Create(label string, scopes Scopes) (string, Token, error) {
	return t.create(label, scopes, false)
}

func (t *Tokens) create(label string, scopes Scopes, login bool) (string, Token, error) {
	if err := scopes.check(); err != nil {
		return "", Token{}, err
	}
	if err := checkLabel(label); err != nil {
		return "", Token{}, err
	}
	id, secret := randomHex(idBytes), randomHex(secretBytes)
	e := &entry{
		token: Token{ID: id, Label: label, Scopes: scopes, Created: t.now().Round(0).Truncate(time.Millisecond), Login: login},
		hash:  sha256.Sum256([]byte(secret)),
	}
	value, err := json.Marshal(record{
		Label: label, Scopes: scopes.Names(), Created: e.token.Created.UnixMilli(), Login: login, Hash: hex.EncodeToString(e.hash[:]),
	})
	if err != nil {
		return "", Token{}, fmt.Errorf("token %s: %w", id, err)
	}
	// The write happens under the lock: creating and revoking are rare, and a
	// token must not be usable before it is on disk.
	t.mu.Lock()
	dropped, err := t.makeRoomLocked(login)
	if err == nil {
		if err = t.store.Put(id, value); err == nil {
			t.entries[id] = e
		}
	}
	told := t.revoked
	t.mu.Unlock()
	if dropped != "" {
		tell(told, dropped)
	}
	if err != nil {
		return "", Token{}, err
	}
	return tokenPrefix + id + "_" + secret, e.token, nil
}

// makeRoomLocked frees one place when the set is full and a login needs it. It
// returns the id of the token that went.
func (t *Tokens) makeRoomLocked(login bool) (dropped string, err error) {
	if len(t.entries) < MaxTokens {
		return "", nil
	}
	var oldest *entry
	for _, e := range t.entries {
		if e.token.Login && (oldest == nil || e.token.Created.Before(oldest.token.Created)) {
			oldest = e
		}
	}
	if !login || oldest == nil {
		return "", ErrTooManyTokens
	}
	if err := t.removeLocked(oldest); err != nil {
		return "", err
	}
	return oldest.token.ID, nil
}

// Verify returns the live token with this text. The comparison takes the same
// time for a wrong secret, and for an unknown id.
func (t *Tokens) Verify(text string) (Token, error) {
	id, secret, ok := splitToken(text)
	got := sha256.Sum256([]byte(secret))
	t.mu.Lock()
	defer t.mu.Unlock()
	var want [sha256.Size]byte
	e := t.entries[id]
	if e != nil {
		want = e.hash
	}
	same := subtle.ConstantTimeCompare(got[:], want[:]) == 1
	if !ok || e == nil || !same {
		return Token{}, ErrBadToken
	}
	return e.token, nil
}

// OnRevoke has f told of every token revoked from now on, after it is gone.
func (t *Tokens) OnRevoke(f func(id string)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.revoked = append(t.revoked, f)
}

// Live reports whether a token with this id is live.
func (t *Tokens) Live(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.entries[id] != nil
}

// Revoke ends a token and, through OnRevoke, every connection that uses it.
func (t *Tokens) Revoke(id string) error {
	t.mu.Lock()
	e := t.entries[id]
	if e == nil {
		t.mu.Unlock()
		return fmt.Errorf("%w: %q", ErrNoToken, id)
	}
	err := t.removeLocked(e)
	told := t.revoked
	t.mu.Unlock()
	if err == nil {
		tell(told, id)
	}
	return err
}

func (t *Tokens) removeLocked(e *entry) error {
	if err := t.store.Delete(e.token.ID); err != nil {
		return fmt.Errorf("revoke token %s: %w", e.token.ID, err)
	}
	delete(t.entries, e.token.ID)
	return nil
}

func tell(told []func(string), id string) {
	for _, f := range told {
		f(id)
	}
}

// List returns the live tokens, oldest first.
func (t *Tokens) List() []Token {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]Token, 0, len(t.entries))
	for _, e := range t.entries {
		list = append(list, e.token)
	}
	slices.SortFunc(list, func(a, b Token) int {
		if c := a.Created.Compare(b.Created); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return list
}

func splitToken(text string) (id, secret string, ok bool) {
	rest, ok := strings.CutPrefix(text, tokenPrefix)
	if !ok {
		return "", "", false
	}
	id, secret, ok = strings.Cut(rest, "_")
	return id, secret, ok && len(id) == 2*idBytes && len(secret) == 2*secretBytes
}

func checkLabel(label string) error {
	if label == "" || len(label) > MaxLabel || !utf8.ValidString(label) {
		return ErrBadLabel
	}
	for _, r := range label {
		// Labels are shown on terminals and beside other people's names.
		if !unicode.IsPrint(r) {
			return ErrBadLabel
		}
	}
	return nil
}

// randomHex returns n random bytes in hexadecimal. crypto/rand never fails.
func randomHex(n int) string {
	raw := make([]byte, n)
	rand.Read(raw)
	return hex.EncodeToString(raw)
}
