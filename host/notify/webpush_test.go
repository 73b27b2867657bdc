package notify

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"
)

func unb64(t *testing.T, text string) []byte {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// The example of RFC 8291, section 5 and appendix A.
func TestSealVector(t *testing.T) {
	own, err := ecdh.P256().NewPrivateKey(unb64(t, "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := seal([]byte("When I grow up, I want to be a watermelon"),
		unb64(t, "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"),
		unb64(t, "BTBZMqHH6r4Tts7J_aSIgg"), own, unb64(t, "DGv6ra1nlYgDCS1FRnbzlw"))
	if err != nil {
		t.Fatal(err)
	}
	want := "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27ml" +
		"mlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPT" +
		"pK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
	if text := base64.RawURLEncoding.EncodeToString(got); text != want {
		t.Errorf("sealed:\n got %s\nwant %s", text, want)
	}
}

// device is the browser's side of Web Push.
type device struct {
	key    *ecdh.PrivateKey
	secret []byte
}

func newDevice(t *testing.T) *device {
	t.Helper()
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	d := &device{key: key, secret: make([]byte, secretLen)}
	rand.Read(d.secret)
	return d
}

func (d *device) subscription(endpoint string) Subscription {
	enc := base64.RawURLEncoding
	return Subscription{Endpoint: endpoint, P256dh: enc.EncodeToString(d.key.PublicKey().Bytes()), Auth: enc.EncodeToString(d.secret)}
}

// open decrypts as a browser does, written apart from seal.
func (d *device) open(body []byte) ([]byte, error) {
	if len(body) < 21 {
		return nil, errors.New("short header")
	}
	salt, size, n := body[:16], binary.BigEndian.Uint32(body[16:20]), int(body[20])
	if len(body) > int(size) || len(body) < 21+n {
		return nil, errors.New("more than one record")
	}
	sender, err := ecdh.P256().NewPublicKey(body[21 : 21+n])
	if err != nil {
		return nil, err
	}
	shared, err := d.key.ECDH(sender)
	if err != nil {
		return nil, err
	}
	prk, err := hkdf.Extract(sha256.New, shared, d.secret)
	if err != nil {
		return nil, err
	}
	ikm, err := hkdf.Expand(sha256.New, prk, "WebPush: info\x00"+string(d.key.PublicKey().Bytes())+string(sender.Bytes()), 32)
	if err != nil {
		return nil, err
	}
	if prk, err = hkdf.Extract(sha256.New, ikm, salt); err != nil {
		return nil, err
	}
	key, err1 := hkdf.Expand(sha256.New, prk, "Content-Encoding: aes128gcm\x00", 16)
	nonce, err2 := hkdf.Expand(sha256.New, prk, "Content-Encoding: nonce\x00", 12)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	padded, err := gcm.Open(nil, nonce, body[21+n:], nil)
	if err != nil {
		return nil, err
	}
	plain := strings.TrimRight(string(padded), "\x00")
	if !strings.HasSuffix(plain, "\x02") {
		return nil, errors.New("the last record is not marked")
	}
	return []byte(plain[:len(plain)-1]), nil
}

// checkVapid verifies an Authorization header as a push service does.
func checkVapid(t *testing.T, header, public, audience string, now time.Time) {
	t.Helper()
	rest, ok := strings.CutPrefix(header, "vapid t=")
	token, k, ok2 := strings.Cut(rest, ", k=")
	parts := strings.Split(token, ".")
	if !ok || !ok2 || len(parts) != 3 || k != public {
		t.Fatalf("authorization %q for key %q", header, public)
	}
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), unb64(t, k))
	if err != nil {
		t.Fatal(err)
	}
	sum, sig := sha256.Sum256([]byte(parts[0]+"."+parts[1])), unb64(t, parts[2])
	if len(sig) != 64 || !ecdsa.Verify(key, sum[:], new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:])) {
		t.Error("the signature does not verify")
	}
	var claims struct {
		Aud, Sub string
		Exp      int64
	}
	if err := json.Unmarshal(unb64(t, parts[1]), &claims); err != nil {
		t.Fatal(err)
	}
	if claims.Aud != audience || claims.Sub == "" || claims.Exp <= now.Unix() || claims.Exp > now.Add(24*time.Hour).Unix() {
		t.Errorf("claims %+v, want audience %s, a contact and an end within 24 h", claims, audience)
	}
}

func TestVapidKeyIsKept(t *testing.T) {
	first, raw, err := newVapid(nil)
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := newVapid(raw)
	if err != nil {
		t.Fatal(err)
	}
	if first.public != again.public || len(unb64(t, again.public)) != keyLen {
		t.Errorf("public key %q, want %q", again.public, first.public)
	}
	if _, _, err := newVapid([]byte("short")); err == nil {
		t.Error("a damaged key was taken")
	}
}

func TestSubscriptionCheck(t *testing.T) {
	good := newDevice(t).subscription("https://push.example/abc")
	short := good
	short.Auth = "AAAA"
	point := good
	point.P256dh = base64.RawURLEncoding.EncodeToString(make([]byte, keyLen))
	long := good
	long.Endpoint += strings.Repeat("x", endpointMax)
	plain := good
	plain.Endpoint = "http://push.example/abc"
	for _, tc := range []struct {
		name     string
		sub      Subscription
		insecure bool
		want     error
	}{
		{name: "good", sub: good},
		{name: "plain http", sub: plain, want: ErrBadSubscription},
		{name: "plain http where allowed", sub: plain, insecure: true},
		{name: "secret of another size", sub: short, want: ErrBadSubscription},
		{name: "no point of the curve", sub: point, want: ErrBadSubscription},
		{name: "long", sub: long, want: ErrBadSubscription},
		{name: "empty", want: ErrBadSubscription},
	} {
		if got := tc.sub.check(tc.insecure); !errors.Is(got, tc.want) {
			t.Errorf("%s: got %v, want %v", tc.name, got, tc.want)
		}
	}
}
