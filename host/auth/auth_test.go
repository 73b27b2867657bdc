package auth

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// memory is a Store that can be told to break.
type memory struct {
	values map[string][]byte
	broken error
}

func newMemory() *memory { return &memory{values: map[string][]byte{}} }

func (m *memory) Put(key string, value []byte) error {
	if m.broken != nil {
		return m.broken
	}
	m.values[key] = append([]byte(nil), value...)
	return nil
}

func (m *memory) Delete(key string) error {
	if m.broken != nil {
		return m.broken
	}
	delete(m.values, key)
	return nil
}

func (m *memory) Each(f func(string, []byte) error) error {
	for k, v := range m.values {
		if err := f(k, v); err != nil {
			return err
		}
	}
	return nil
}

// clock is a hand-moved time.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func openTokens(t *testing.T, m *memory, now func() time.Time) *Tokens {
	t.Helper()
	tokens, err := OpenTokens(m, now)
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

func TestTokenOutlivesRestartAndSecretIsNotStored(t *testing.T) {
	m := newMemory()
	text, made, err := openTokens(t, m, nil).Create("build-bot", Scopes(Read|Ask))
	if err != nil {
		t.Fatal(err)
	}
	_, secret, _ := splitToken(text)
	for key, value := range m.values {
		if strings.Contains(string(value), secret) {
			t.Errorf("record %s holds the secret", key)
		}
	}
	got, err := openTokens(t, m, nil).Verify(text)
	if err != nil {
		t.Fatalf("Verify after reopening: %v", err)
	}
	if diff := cmp.Diff(made, got); diff != "" {
		t.Errorf("token after reopening (-made +got):\n%s", diff)
	}
}

func TestVerifyRefuses(t *testing.T) {
	tokens := openTokens(t, newMemory(), nil)
	text, made, err := tokens.Create("x", Scopes(Read))
	if err != nil {
		t.Fatal(err)
	}
	flipped := []byte(text)
	flipped[len(flipped)-1] ^= 1
	for _, tc := range []struct{ name, text string }{
		{"empty", ""},
		{"prefix only", tokenPrefix},
		{"id only", tokenPrefix + made.ID},
		{"id and empty secret", tokenPrefix + made.ID + "_"},
		{"one character off", string(flipped)},
		{"another case", strings.ToUpper(text)},
		{"trailing space", text + " "},
		{"unknown id", tokenPrefix + strings.Repeat("0", 16) + "_" + strings.Repeat("0", 64)},
	} {
		if _, err := tokens.Verify(tc.text); !errors.Is(err, ErrBadToken) {
			t.Errorf("%s: Verify = %v, want ErrBadToken", tc.name, err)
		}
	}
	// A comparison of a byte or so would let one of these in.
	for range 5000 {
		if _, err := tokens.Verify(tokenPrefix + made.ID + "_" + randomHex(secretBytes)); !errors.Is(err, ErrBadToken) {
			t.Fatalf("a guessed secret: Verify = %v, want ErrBadToken", err)
		}
	}
}

func TestScopes(t *testing.T) {
	for _, tc := range []struct {
		name    string
		scopes  []string
		want    string
		wantErr string
	}{
		{name: "none", wantErr: "at least one scope"},
		{name: "unknown", scopes: []string{"write"}, wantErr: `unknown scope "write"`},
		{name: "case matters", scopes: []string{"Read"}, wantErr: "unknown scope"},
		{name: "ask and answer", scopes: []string{"answer", "read", "ask"}, wantErr: "ask and answer"},
		{name: "all but ask", scopes: []string{"admin", "answer", "read"}, want: "read answer admin"},
		{name: "twice is once", scopes: []string{"ask", "ask"}, want: "ask"},
	} {
		got, err := ParseScopes(tc.scopes)
		if tc.wantErr != "" {
			if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("%s: error %v, want one with %q", tc.name, err, tc.wantErr)
			}
			continue
		}
		if err != nil || got.String() != tc.want {
			t.Errorf("%s: got %q, %v; want %q", tc.name, got, err, tc.want)
		}
	}
	for _, right := range []Scope{Read, Answer, Ask} {
		if Scopes(Admin).Has(right) {
			t.Errorf("admin implies %s", Scopes(right))
		}
	}
	if SocketScopes.Has(Answer) || LoginScopes.Has(Ask) {
		t.Errorf("socket %s, login %s: neither may hold both sides of a question", SocketScopes, LoginScopes)
	}
}

func TestCreateRefuses(t *testing.T) {
	for _, tc := range []struct {
		name   string
		label  string
		scopes Scopes
		want   error
	}{
		{"no label", "", Scopes(Read), ErrBadLabel},
		{"long label", strings.Repeat("x", MaxLabel+1), Scopes(Read), ErrBadLabel},
		{"escape in label", "a\x1b[31m", Scopes(Read), ErrBadLabel},
		{"bidi in label", "a\u202eb", Scopes(Read), ErrBadLabel},
		{"no scope", "x", 0, ErrNoScope},
		{"both sides", "x", Scopes(Ask | Answer), ErrAskAnswer},
	} {
		m := newMemory()
		if _, _, err := openTokens(t, m, nil).Create(tc.label, tc.scopes); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, err, tc.want)
		}
		if len(m.values) != 0 {
			t.Errorf("%s: a refused token was stored", tc.name)
		}
	}
}

func TestRevokeDropsConnections(t *testing.T) {
	m := newMemory()
	tokens := openTokens(t, m, nil)
	text, made, err := tokens.Create("phone", Scopes(Read))
	if err != nil {
		t.Fatal(err)
	}
	var dropped []string
	tokens.OnRevoke(func(id string) {
		if tokens.Live(id) {
			t.Error("told of a token that is still live")
		}
		dropped = append(dropped, id)
	})
	if err := tokens.Revoke(made.ID); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{made.ID}, dropped); diff != "" {
		t.Errorf("told of (-want +got):\n%s", diff)
	}
	if _, err := tokens.Verify(text); !errors.Is(err, ErrBadToken) {
		t.Errorf("Verify after Revoke = %v", err)
	}
	if err := tokens.Revoke(made.ID); !errors.Is(err, ErrNoToken) {
		t.Errorf("second Revoke = %v, want ErrNoToken", err)
	}
	if len(m.values) != 0 {
		t.Errorf("the record of a revoked token stays: %v", m.values)
	}
}

// A store that cannot write must not leave a token usable in memory only, nor
// claim that one is gone which a restart brings back.
func TestBrokenStore(t *testing.T) {
	m := newMemory()
	tokens := openTokens(t, m, nil)
	text, made, err := tokens.Create("x", Scopes(Read))
	if err != nil {
		t.Fatal(err)
	}
	m.broken = errors.New("disk full")
	if _, _, err := tokens.Create("y", Scopes(Read)); !errors.Is(err, m.broken) {
		t.Errorf("Create = %v, want %v", err, m.broken)
	}
	if err := tokens.Revoke(made.ID); !errors.Is(err, m.broken) {
		t.Errorf("Revoke = %v, want %v", err, m.broken)
	}
	if got := tokens.List(); len(got) != 1 {
		t.Errorf("%d tokens live, want 1", len(got))
	}
	if _, err := tokens.Verify(text); err != nil {
		t.Errorf("Verify = %v", err)
	}
}

func TestTokenLimit(t *testing.T) {
	c := &clock{at: time.UnixMilli(1000)}
	tokens := openTokens(t, newMemory(), c.now)
	codes := NewCodes(tokens)
	first, oldest, err := codes.Redeem("a", codes.Issue(), "")
	if err != nil {
		t.Fatal(err)
	}
	var dropped []string
	tokens.OnRevoke(func(id string) { dropped = append(dropped, id) })
	for range MaxTokens - 1 {
		c.at = c.at.Add(time.Second)
		if _, _, err := tokens.Create("bot", Scopes(Ask)); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := tokens.Create("one more", Scopes(Ask)); !errors.Is(err, ErrTooManyTokens) {
		t.Errorf("Create past the limit = %v", err)
	}
	if _, _, err := codes.Redeem("a", codes.Issue(), ""); err != nil {
		t.Errorf("a login past the limit = %v, want it to replace the oldest login", err)
	}
	if _, err := tokens.Verify(first); !errors.Is(err, ErrBadToken) {
		t.Errorf("the oldest login is still good: %v", err)
	}
	if len(dropped) != 1 || dropped[0] != oldest.ID {
		t.Errorf("told of %v, want the login that gave way", dropped)
	}
	if _, _, err := codes.Redeem("a", codes.Issue(), ""); err != nil {
		t.Errorf("the next login = %v", err)
	}
}

func TestCodeIsGoodOnce(t *testing.T) {
	c := &clock{at: time.UnixMilli(1000)}
	tokens := openTokens(t, newMemory(), c.now)
	codes := NewCodes(tokens)
	code := codes.Issue()
	if _, _, err := codes.Redeem("a", code, strings.Repeat("x", MaxLabel+1)); !errors.Is(err, ErrBadLabel) {
		t.Errorf("bad label: %v", err)
	}
	text, token, err := codes.Redeem("a", code, "desk")
	if err != nil {
		t.Fatal(err)
	}
	if token.Scopes != LoginScopes || token.Label != "desk" || !token.Login {
		t.Errorf("login token = %+v", token)
	}
	if _, err := tokens.Verify(text); err != nil {
		t.Errorf("Verify = %v", err)
	}
	if _, _, err := codes.Redeem("a", code, ""); !errors.Is(err, ErrBadCode) {
		t.Errorf("second Redeem = %v, want ErrBadCode", err)
	}
}

func TestCodeExpires(t *testing.T) {
	for _, tc := range []struct {
		name  string
		after time.Duration
		want  error
	}{
		{"a tick before", CodeLife - 1, nil},
		{"on the tick", CodeLife, ErrBadCode},
	} {
		c := &clock{at: time.UnixMilli(1000)}
		codes := NewCodes(openTokens(t, newMemory(), c.now))
		code := codes.Issue()
		c.at = c.at.Add(tc.after)
		if _, _, err := codes.Redeem("a", code, ""); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, err, tc.want)
		}
	}
}

func TestOldestCodeGivesWay(t *testing.T) {
	codes := NewCodes(openTokens(t, newMemory(), nil))
	first := codes.Issue()
	var last string
	for range maxCodes {
		last = codes.Issue()
	}
	if _, _, err := codes.Redeem("a", first, ""); !errors.Is(err, ErrBadCode) {
		t.Errorf("the oldest code: %v, want ErrBadCode", err)
	}
	if _, _, err := codes.Redeem("a", last, ""); err != nil {
		t.Errorf("the newest code: %v", err)
	}
}

func TestLoginRate(t *testing.T) {
	c := &clock{at: time.UnixMilli(1000)}
	codes := NewCodes(openTokens(t, newMemory(), c.now))
	code := codes.Issue()
	for range redeemBurst {
		if _, _, err := codes.Redeem("a", "guess", ""); !errors.Is(err, ErrBadCode) {
			t.Fatalf("guess = %v", err)
		}
	}
	var rate *RateError
	if _, _, err := codes.Redeem("a", code, ""); !errors.As(err, &rate) || rate.RetryAfter != redeemEvery {
		t.Fatalf("the right code past the limit = %v, want a wait of %v", err, redeemEvery)
	}
	if _, _, err := codes.Redeem("b", "guess", ""); !errors.Is(err, ErrBadCode) {
		t.Errorf("another address = %v, want its own allowance", err)
	}
	c.at = c.at.Add(redeemEvery)
	if _, _, err := codes.Redeem("a", code, ""); err != nil {
		t.Errorf("after the wait = %v", err)
	}
	for i := range 3 * redeemBurst {
		if _, _, err := codes.Redeem("c", codes.Issue(), ""); err != nil {
			t.Fatalf("good link %d = %v, want only guesses to count", i, err)
		}
	}
}

func TestLoginRateRemembersBoundedAddresses(t *testing.T) {
	c := &clock{at: time.UnixMilli(1000)}
	codes := NewCodes(openTokens(t, newMemory(), c.now))
	limited := 0
	for i := range maxRemotes + 2*redeemBurst {
		_, _, err := codes.Redeem(strings.Repeat("x", i), "guess", "")
		var rate *RateError
		if errors.As(err, &rate) {
			limited++
		}
	}
	if len(codes.remotes) > maxRemotes+1 {
		t.Errorf("%d addresses remembered, limit %d", len(codes.remotes), maxRemotes)
	}
	if limited < redeemBurst-1 {
		t.Errorf("%d newcomers limited, want fresh addresses past the limit to share one allowance", limited)
	}
	c.at = c.at.Add(redeemBurst * redeemEvery)
	if _, _, err := codes.Redeem("late", "guess", ""); !errors.Is(err, ErrBadCode) {
		t.Errorf("after the limiter forgot = %v", err)
	}
}
