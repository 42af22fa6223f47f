package approval

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hermesd/hermesd/internal/atomicfile"
)

const (
	keySize  = 32
	keyFile  = "approval.key"
	maxToken = 64 << 10 // bytes; a batch of the largest size stays well below
)

// Key authenticates what clients and webhooks carry for the broker.
type Key [keySize]byte

// LoadKey reads the key in the state directory, and makes one if there is none.
func LoadKey(dir string) (Key, error) {
	var k Key
	path := filepath.Join(dir, keyFile)
	raw, err := os.ReadFile(path)
	switch {
	case err == nil && len(raw) == keySize:
		return Key(raw), nil
	case err == nil:
		return k, fmt.Errorf("approval key: %s holds %d bytes, not %d; delete it, then a new one is made", path, len(raw), keySize)
	case !errors.Is(err, os.ErrNotExist):
		return k, fmt.Errorf("approval key: %w", err)
	}
	rand.Read(k[:]) //nolint:errcheck // never fails (crypto/rand)
	if err := atomicfile.Create(path, k[:]); err != nil {
		return k, fmt.Errorf("approval key: %w", err)
	}
	return k, nil
}

// State is what a client brings back with a batch that waited for its human's answer: which requests it was asked about,
// and what each is bound to.
type State struct {
	Items   []StateItem `json:"i"`
	Expires int64       `json:"e"` // Unix milliseconds
}

// StateItem is one request of a [State].
type StateItem struct {
	ID      string `json:"id"`
	Binding string `json:"b"`
}

// The purposes of tokens: one made for one is worthless for the other.
const (
	purposeState = "hermesd request state v1"
	purposeLink  = "hermesd answer link v1"
)

// Seal makes a token of a state: readable, but only the key's holder can make or change one.
func Seal(k Key, s *State) (string, error) { return seal(k, purposeState, s) }

// Open reads a token that [Seal] made with the same key. It fails for any other one and for one that has expired.
func Open(k Key, token string) (*State, error) { return open(k, purposeState, token) }

func seal(k Key, purpose string, s *State) (string, error) {
	raw, err := json.Marshal(s)
	if err != nil {
		return "", err
	}
	enc := base64.RawURLEncoding
	token := enc.EncodeToString(raw) + "." + enc.EncodeToString(k.mac(purpose, raw))
	if len(token) > maxToken {
		return "", fmt.Errorf("request state: %d requests do not fit into one token", len(s.Items))
	}
	return token, nil
}

var errToken = errors.New("the request state was not made here, or was changed")

func open(k Key, purpose, token string) (*State, error) {
	body, mac, ok := strings.Cut(token, ".")
	if !ok || len(token) > maxToken {
		return nil, errToken
	}
	enc := base64.RawURLEncoding.Strict() // one token has one form
	raw, err := enc.DecodeString(body)
	if err != nil {
		return nil, errToken
	}
	sent, err := enc.DecodeString(mac)
	if err != nil || !hmac.Equal(sent, k.mac(purpose, raw)) {
		return nil, errToken
	}
	var s State
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, errToken
	}
	if time.Now().UnixMilli() >= s.Expires {
		return nil, errors.New("the request state has expired")
	}
	return &s, nil
}

func (k *Key) mac(purpose string, body []byte) []byte {
	m := hmac.New(sha256.New, k[:])
	m.Write([]byte(purpose))
	m.Write([]byte{0})
	m.Write(body)
	return m.Sum(nil)
}
