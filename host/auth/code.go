package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Limits of logging in.
const (
	CodeLife    = 10 * time.Minute // from issue to expiry
	maxCodes    = 16               // outstanding; the oldest is dropped for a new one
	redeemBurst = 10               // attempts at once for one remote address
	redeemEvery = 6 * time.Second  // one more attempt
	maxRemotes  = 1024             // addresses remembered; past it all share one allowance
	codeBytes   = 20
)

// ErrBadCode says that a login code is wrong, used or expired.
var ErrBadCode = errors.New("the login link is wrong, used or too old: run `meanwhile login` for a new one")

// RateError says that an address tried too often.
type RateError struct{ RetryAfter time.Duration }

func (e *RateError) Error() string {
	return fmt.Sprintf("too many login attempts: try again in %d s", int(e.RetryAfter.Seconds())+1)
}

type code struct {
	hash    [sha256.Size]byte
	expires time.Time
}

// allowance is a token bucket.
type allowance struct {
	left float64
	at   time.Time
}

// Codes issues and redeems login codes.
type Codes struct {
	tokens *Tokens
	now    func() time.Time

	mu      sync.Mutex
	codes   []code // oldest first
	remotes map[string]*allowance
}

// NewCodes returns a set without codes. Redeemed codes become tokens of tokens.
func NewCodes(tokens *Tokens) *Codes {
	return &Codes{tokens: tokens, now: tokens.now, remotes: map[string]*allowance{}}
}

// Issue returns a fresh code, good once and for CodeLife.
func (c *Codes) Issue() string {
	text := randomHex(codeBytes)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.codes) == maxCodes {
		c.codes = c.codes[1:]
	}
	c.codes = append(c.codes, code{hash: sha256.Sum256([]byte(text)), expires: c.now().Add(CodeLife)})
	return text
}

// Redeem spends a code and returns a new login token. remote is the address
// the attempt came from. An empty label becomes "browser".
func (c *Codes) Redeem(remote, text, label string) (string, Token, error) {
	if label == "" {
		label = "browser"
	}
	// Before the code is spent: a bad label must not cost the person the link.
	if err := checkLabel(label); err != nil {
		return "", Token{}, err
	}
	if err := c.spend(remote, text); err != nil {
		return "", Token{}, err
	}
	return c.tokens.create(label, LoginScopes, true)
}

func (c *Codes) spend(remote, text string) error {
	got := sha256.Sum256([]byte(text))
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if wait := c.takeLocked(remote, now); wait > 0 {
		return &RateError{RetryAfter: wait}
	}
	found := -1
	kept := c.codes[:0]
	for _, k := range c.codes {
		if !now.Before(k.expires) {
			continue
		}
		if subtle.ConstantTimeCompare(got[:], k.hash[:]) == 1 {
			found = len(kept)
		}
		kept = append(kept, k)
	}
	c.codes = kept
	if found < 0 {
		return ErrBadCode
	}
	c.codes = append(c.codes[:found], c.codes[found+1:]...)
	// The limit is on guessing: whoever holds a link is no guesser.
	if a := c.remotes[remote]; a != nil {
		a.left = min(redeemBurst, a.left+1)
	}
	return nil
}

// takeLocked takes one attempt and returns how long to wait when none is left.
func (c *Codes) takeLocked(remote string, now time.Time) time.Duration {
	a := c.remotes[remote]
	if a == nil && len(c.remotes) >= maxRemotes {
		c.forgetLocked(now)
		if len(c.remotes) >= maxRemotes {
			remote = "" // all newcomers share one allowance rather than get a fresh one each
			a = c.remotes[remote]
		}
	}
	if a == nil {
		a = &allowance{left: redeemBurst, at: now}
		c.remotes[remote] = a
	}
	if gone := now.Sub(a.at); gone > 0 {
		a.left = min(redeemBurst, a.left+gone.Seconds()/redeemEvery.Seconds())
	}
	a.at = now
	if a.left < 1 {
		return time.Duration((1 - a.left) * float64(redeemEvery))
	}
	a.left--
	return 0
}

// forgetLocked drops addresses whose allowance is full again.
func (c *Codes) forgetLocked(now time.Time) {
	for remote, a := range c.remotes {
		if now.Sub(a.at) >= redeemBurst*redeemEvery {
			delete(c.remotes, remote)
		}
	}
}
