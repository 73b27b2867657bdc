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
	"fmt"
	"math/big"
	"net/url"
	"time"
)

const (
	recordSize = 4096            // one record of RFC 8188, as every push service takes it
	plainMax   = 3900            // bytes of a payload; leaves room for header, tag and padding mark
	jwtLife    = 12 * time.Hour  // RFC 8292 allows 24 h
	keyLen     = 65              // an uncompressed point of P-256
	secretLen  = 16              // a subscription's authentication secret
	overhead   = 16 + 4 + 1 + 65 // salt, record size, key length, key
)

var errPayload = errors.New("the payload is too long for one record")

// seal encrypts a payload for a subscription as RFC 8291 has it. ephemeral and
// salt are fresh for each message.
func seal(plain, client, secret []byte, ephemeral *ecdh.PrivateKey, salt []byte) ([]byte, error) {
	if len(plain) > plainMax {
		return nil, errPayload
	}
	peer, err := ecdh.P256().NewPublicKey(client)
	if err != nil {
		return nil, fmt.Errorf("key of the subscription: %w", err)
	}
	shared, err := ephemeral.ECDH(peer)
	if err != nil {
		return nil, fmt.Errorf("key of the subscription: %w", err)
	}
	own := ephemeral.PublicKey().Bytes()
	info := append(append([]byte("WebPush: info\x00"), client...), own...)
	ikm, err := hkdf.Key(sha256.New, shared, secret, string(info), 32)
	if err != nil {
		return nil, err
	}
	key, err := hkdf.Key(sha256.New, ikm, salt, "Content-Encoding: aes128gcm\x00", 16)
	if err != nil {
		return nil, err
	}
	nonce, err := hkdf.Key(sha256.New, ikm, salt, "Content-Encoding: nonce\x00", 12)
	if err != nil {
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
	out := make([]byte, 0, overhead+len(plain)+1+gcm.Overhead())
	out = append(out, salt...)
	out = binary.BigEndian.AppendUint32(out, recordSize)
	out = append(out, byte(len(own)))
	out = append(out, own...)
	// 2 marks the last record; there is one.
	return gcm.Seal(out, nonce, append(append([]byte{}, plain...), 2), nil), nil
}

// sealFresh is seal with a key and a salt of its own.
func sealFresh(plain, client, secret []byte) ([]byte, error) {
	ephemeral, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	salt := make([]byte, 16)
	rand.Read(salt)
	return seal(plain, client, secret, ephemeral, salt)
}

// vapid is the key by which push services know this host.
type vapid struct {
	key     *ecdsa.PrivateKey
	public  string // as browsers take it
	contact string // mailto: or https:
}

// newVapid makes a key, or reads the one in raw.
func newVapid(raw []byte) (*vapid, []byte, error) {
	var key *ecdsa.PrivateKey
	var err error
	if raw == nil {
		if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			return nil, nil, err
		}
	} else if key, err = ecdsa.ParseRawPrivateKey(elliptic.P256(), raw); err != nil {
		return nil, nil, fmt.Errorf("stored push key: %w", err)
	}
	point, err := key.PublicKey.Bytes()
	if err != nil {
		return nil, nil, err
	}
	if raw, err = key.Bytes(); err != nil {
		return nil, nil, err
	}
	return &vapid{key: key, public: base64.RawURLEncoding.EncodeToString(point)}, raw, nil
}

// authorization is the header for one endpoint.
func (v *vapid) authorization(endpoint string, now time.Time) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return "", err
	}
	claims, err := json.Marshal(map[string]any{
		"aud": u.Scheme + "://" + u.Host, "exp": now.Add(jwtLife).Unix(), "sub": v.contact,
	})
	if err != nil {
		return "", err
	}
	enc := base64.RawURLEncoding
	signed := enc.EncodeToString([]byte(`{"typ":"JWT","alg":"ES256"}`)) + "." + enc.EncodeToString(claims)
	sum := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, v.key, sum[:])
	if err != nil {
		return "", err
	}
	return "vapid t=" + signed + "." + enc.EncodeToString(fixed(r, s)) + ", k=" + v.public, nil
}

// fixed is a signature as JSON Web Tokens write it.
func fixed(r, s *big.Int) []byte {
	out := make([]byte, 64)
	r.FillBytes(out[:32])
	s.FillBytes(out[32:])
	return out
}
