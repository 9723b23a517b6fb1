package issuertest

import (
	"crypto"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

// Issuer serves its discovery document and its keys.
type Issuer struct {
	*httptest.Server
	mu   sync.Mutex
	keys []jose.JSONWebKey
	// Away makes it answer nothing. Fetches counts how often its keys were fetched.
	Away    atomic.Bool
	Fetches atomic.Int64
}

// New starts an issuer that has no keys.
func New(t testing.TB) *Issuer {
	t.Helper()
	p := &Issuer{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.Away.Load() {
			http.Error(w, "away", http.StatusBadGateway)
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		switch r.URL.Path {
		case "/.well-known/openid-configuration":
			_ = json.NewEncoder(w).Encode(map[string]any{"issuer": p.URL, "jwks_uri": p.URL + "/keys", "authorization_endpoint": p.URL, "token_endpoint": p.URL, "id_token_signing_alg_values_supported": []string{"RS256"}})
		case "/keys":
			p.Fetches.Add(1)
			_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: p.keys})
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(p.Close)
	return p
}

// Publish makes a key one of the issuer's.
func (p *Issuer) Publish(name string, public crypto.PublicKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = append(p.keys, jose.JSONWebKey{Key: public, KeyID: name, Use: "sig"})
}

// Withdraw takes back the key that was published first.
func (p *Issuer) Withdraw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = p.keys[1:]
}

// Sign makes a JWT.
func Sign(t testing.TB, alg jose.SignatureAlgorithm, key any, name string, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: jose.JSONWebKey{Key: key, KeyID: name}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	jws, err := signer.Sign(text)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jws.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}
