package auth

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
)

// idp is an issuer: it serves its discovery document and its keys.
type idp struct {
	*httptest.Server
	mu      sync.Mutex
	keys    []jose.JSONWebKey
	away    atomic.Bool
	fetches atomic.Int64
}

func newIDP(t *testing.T) *idp {
	p := &idp{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.away.Load() {
			http.Error(w, "away", http.StatusBadGateway)
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		switch r.URL.Path {
		case "/.well-known/openid-configuration":
			_ = json.NewEncoder(w).Encode(map[string]any{"issuer": p.URL, "jwks_uri": p.URL + "/keys", "authorization_endpoint": p.URL, "token_endpoint": p.URL, "id_token_signing_alg_values_supported": []string{"RS256"}})
		case "/keys":
			p.fetches.Add(1)
			_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: p.keys})
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(p.Close)
	return p
}

// publish makes a key one of the issuer's.
func (p *idp) publish(name string, public crypto.PublicKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = append(p.keys, jose.JSONWebKey{Key: public, KeyID: name, Use: "sig"})
}

// sign makes a JWT.
func sign(t *testing.T, alg jose.SignatureAlgorithm, key any, name string, claims map[string]any) string {
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

// TestOIDC: JWTs of a real issuer give tenants and rights, through changes of keys and while it is away.
func TestOIDC(t *testing.T) {
	p := newIDP(t)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p.publish("one", rsaKey.Public())
	w := &world{path: filepath.Join(t.TempDir(), "keys.yaml")}
	w.write(t, file+fmt.Sprintf("oidc: {issuer: %q, audience: shale, tenants_claim: tenants, rights_claim: scope}\n", p.URL))
	now := time.Now()
	p.away.Store(true) // at the start
	w.Guard, err = New(Options{
		File: w.path, Registerer: prometheus.NewRegistry(), Logger: slog.New(slog.NewTextHandler(&w.log, nil)),
		Now: func() time.Time { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	claims := func(change ...any) map[string]any {
		c := map[string]any{"iss": p.URL, "aud": "shale", "sub": "mary", "exp": now.Add(time.Minute).Unix(), "iat": now.Unix(), "tenants": []string{"a", "b"}, "scope": "openid read"}
		for i := 0; i < len(change); i += 2 {
			if c[change[i].(string)] = change[i+1]; change[i+1] == nil {
				delete(c, change[i].(string))
			}
		}
		return c
	}
	good := sign(t, jose.RS256, rsaKey, "one", claims())
	want := func(what, token string, needs Right, status int, body string, header ...string) {
		t.Helper()
		rec := w.ask(needs, http.MethodGet, append([]string{"Authorization", "Bearer " + token}, header...)...)
		if rec.Code != status || !strings.Contains(rec.Body.String(), body) || rec.Code == 503 && rec.Header().Get("Retry-After") == "" {
			t.Errorf("%s: got %d %s, want %d %s", what, rec.Code, rec.Body, status, body)
		}
	}
	want("the issuer is away at the start", good, Read, 503, p.URL+" cannot be fetched: 502")
	want("tokens of the file count", "shale_r", Read, 200, "a")
	p.away.Store(false)
	want("it has been tried just now", good, Read, 503, "cannot be fetched")
	now = now.Add(11 * time.Second)
	want("it is there", good, Read, 200, "a")
	want("the second tenant", good, Read, 200, "b", model.TenantHeader, "b")
	want("another tenant", good, Read, 403, `the JWT "mary" is not for the tenant "c"`, model.TenantHeader, "c")
	want("another right", good, Delete, 403, `the JWT "mary" lacks the right delete`)
	rec := w.ask(Read, http.MethodGet, "Authorization", "Basic "+basicOf("x", good))
	if rec.Code != 200 {
		t.Errorf("as the password of Basic: %d %s", rec.Code, rec.Body)
	}
	parts := strings.Split(good, ".")
	none := "eyJhbGciOiJub25lIn0." + parts[1] + "."
	hmac := sign(t, jose.HS256, bytes.Repeat([]byte("k"), 32), "one", claims())
	for _, test := range []struct {
		name, token string
		status      int
		body        string
	}{
		{"a wrong audience", sign(t, jose.RS256, rsaKey, "one", claims("aud", "grafana")), 401, "audience"},
		{"several audiences", sign(t, jose.RS256, rsaKey, "one", claims("aud", []string{"grafana", "shale"})), 200, "a"},
		{"no audience", sign(t, jose.RS256, rsaKey, "one", claims("aud", nil)), 401, "audience"},
		{"another issuer", sign(t, jose.RS256, rsaKey, "one", claims("iss", "https://other.example")), 401, "different provider"},
		{"expired", sign(t, jose.RS256, rsaKey, "one", claims("exp", now.Add(-31*time.Second).Unix())), 401, "expired"},
		{"expired by another clock", sign(t, jose.RS256, rsaKey, "one", claims("exp", now.Add(-29*time.Second).Unix())), 200, "a"},
		{"without end", sign(t, jose.RS256, rsaKey, "one", claims("exp", nil)), 401, "expired"},
		{"not yet", sign(t, jose.RS256, rsaKey, "one", claims("nbf", now.Add(6*time.Minute).Unix())), 401, "not before"},
		{"not yet by another clock", sign(t, jose.RS256, rsaKey, "one", claims("nbf", now.Add(30*time.Second).Unix())), 200, "a"},
		{"no tenants", sign(t, jose.RS256, rsaKey, "one", claims("tenants", nil)), 403, "its claim tenants is missing or empty"},
		{"all tenants", sign(t, jose.RS256, rsaKey, "one", claims("tenants", "*")), 403, "cannot be a tenant"},
		{"two tenants in one", sign(t, jose.RS256, rsaKey, "one", claims("tenants", []string{"a|b"})), 403, "cannot be a tenant"},
		{"a tenant that is a number", sign(t, jose.RS256, rsaKey, "one", claims("tenants", 7)), 403, "missing or empty"},
		{"one tenant", sign(t, jose.RS256, rsaKey, "one", claims("tenants", "b")), 200, "b"},
		{"no rights", sign(t, jose.RS256, rsaKey, "one", claims("scope", nil)), 403, "lacks the right read"},
		{"changed claims", parts[0] + "." + strings.Split(sign(t, jose.RS256, rsaKey, "one", claims("tenants", "c")), ".")[1] + "." + parts[2], 401, "signature"},
		{"no signature", none, 401, "malformed"},
		{"an HMAC", hmac, 401, "malformed"},
		{"two dots", "a.b.c", 401, "malformed"},
	} {
		want(test.name, test.token, Read, test.status, test.body)
	}

	// An unknown key costs the issuer one request in ten seconds.
	next := sign(t, jose.ES256, ecKey, "two", claims())
	before := p.fetches.Load()
	now = now.Add(11 * time.Second)
	for range 100 {
		want("a key that the issuer does not have", next, Read, 401, "no key of the issuer")
	}
	if n := p.fetches.Load() - before; n != 1 {
		t.Errorf("%d fetches for 100 tokens with an unknown key", n)
	}
	p.publish("two", ecKey.Public())
	now = now.Add(11 * time.Second)
	want("a new key", next, Read, 200, "a")
	want("the one before", good, Read, 200, "a")

	// While the issuer is away, its keys count for a day. A key that may be a new one is not refused for good.
	p.away.Store(true)
	now = now.Add(10 * time.Minute)
	later := sign(t, jose.RS256, rsaKey, "one", claims())
	want("away", later, Read, 200, "a")
	want("away, and the key is unknown", sign(t, jose.RS256, rsaKey, "three", claims()), Read, 503, "cannot be fetched")
	now = now.Add(25 * time.Hour)
	want("away for more than a day", sign(t, jose.RS256, rsaKey, "one", claims()), Read, 503, "cannot be fetched")

	// A withdrawn key ends with the next fetch.
	p.away.Store(false)
	p.mu.Lock()
	p.keys = p.keys[1:]
	p.mu.Unlock()
	now = now.Add(6 * time.Minute)
	if err := w.keys.Load().oidc.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	want("withdrawn", sign(t, jose.RS256, rsaKey, "one", claims()), Read, 401, "no key of the issuer")

	// Without the block no JWT counts, and with the same one the keys are kept.
	p.away.Store(true)
	if err := w.load(); err != nil {
		t.Fatal(err)
	}
	want("read again", sign(t, jose.ES256, ecKey, "two", claims()), Read, 200, "a")
	w.write(t, file)
	if err := w.load(); err != nil {
		t.Fatal(err)
	}
	want("no issuer", sign(t, jose.ES256, ecKey, "two", claims()), Read, 401, "not known")
	if strings.Contains(w.log.String(), parts[2]) {
		t.Error("the log has a JWT")
	}
}

// TestOIDCFiles: what would let in too many is refused.
func TestOIDCFiles(t *testing.T) {
	w := newWorld(t)
	for text, want := range map[string]string{
		"{issuer: 'http://issuer.example', audience: x, tenants: [a], rights: [read]}":             "expected https",
		"{issuer: 'issuer', audience: x, tenants: [a], rights: [read]}":                            "expected a URL",
		"{issuer: 'https://issuer.example', tenants: [a], rights: [read]}":                         "audience: has no value",
		"{issuer: 'https://issuer.example', audience: x, rights: [read]}":                          "one of tenants_claim and tenants",
		"{issuer: 'https://issuer.example', audience: x, tenants: [a]}":                            "one of rights_claim and rights",
		"{issuer: 'https://issuer.example', audience: x, tenants: [a], rights: [root]}":            `unknown right "root"`,
		"{issuer: 'https://issuer.example', audience: x, tenants: [a], rights: [read], secret: x}": "expected lists",
	} {
		w.write(t, "oidc: "+text)
		if err := w.load(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	w.write(t, "oidc: {issuer: 'https://issuer.example', audience: x, tenants: ['*'], rights: [read]}")
	if err := w.load(); err != nil {
		t.Error(err)
	}
}
