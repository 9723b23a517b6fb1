package auth

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/auth/issuertest"
	"github.com/shaledb/shale/internal/model"
)

// TestOIDC: JWTs of a real issuer give tenants and rights, through changes of keys and while it is away.
func TestOIDC(t *testing.T) {
	p := issuertest.New(t)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p.Publish("one", rsaKey.Public())
	w := &world{path: filepath.Join(t.TempDir(), "keys.yaml")}
	w.write(t, file+fmt.Sprintf("oidc: {issuer: %q, audience: shale, tenants_claim: tenants, rights_claim: scope}\n", p.URL))
	now := time.Now()
	p.Away.Store(true) // at the start
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
	good := issuertest.Sign(t, jose.RS256, rsaKey, "one", claims())
	want := func(what, token string, needs Right, status int, body string, header ...string) {
		t.Helper()
		rec := w.ask(needs, http.MethodGet, append([]string{"Authorization", "Bearer " + token}, header...)...)
		if rec.Code != status || !strings.Contains(rec.Body.String(), body) || rec.Code == 503 && rec.Header().Get("Retry-After") == "" {
			t.Errorf("%s: got %d %s, want %d %s", what, rec.Code, rec.Body, status, body)
		}
	}
	want("the issuer is away at the start", good, Read, 503, p.URL+" cannot be fetched: 502")
	want("tokens of the file count", "shale_r", Read, 200, "a")
	p.Away.Store(false)
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
	hmac := issuertest.Sign(t, jose.HS256, bytes.Repeat([]byte("k"), 32), "one", claims())
	for _, test := range []struct {
		name, token string
		status      int
		body        string
	}{
		{"a wrong audience", issuertest.Sign(t, jose.RS256, rsaKey, "one", claims("aud", "grafana")), 401, "audience"},
		{"several audiences", issuertest.Sign(t, jose.RS256, rsaKey, "one", claims("aud", []string{"grafana", "shale"})), 200, "a"},
		{"no audience", issuertest.Sign(t, jose.RS256, rsaKey, "one", claims("aud", nil)), 401, "audience"},
		{"another issuer", issuertest.Sign(t, jose.RS256, rsaKey, "one", claims("iss", "https://other.example")), 401, "different provider"},
		{"expired", issuertest.Sign(t, jose.RS256, rsaKey, "one", claims("exp", now.Add(-31*time.Second).Unix())), 401, "expired"},
		{"expired by another clock", issuertest.Sign(t, jose.RS256, rsaKey, "one", claims("exp", now.Add(-29*time.Second).Unix())), 200, "a"},
		{"without end", issuertest.Sign(t, jose.RS256, rsaKey, "one", claims("exp", nil)), 401, "expired"},
		{"not yet", issuertest.Sign(t, jose.RS256, rsaKey, "one", claims("nbf", now.Add(6*time.Minute).Unix())), 401, "not before"},
		{"not yet by another clock", issuertest.Sign(t, jose.RS256, rsaKey, "one", claims("nbf", now.Add(30*time.Second).Unix())), 200, "a"},
		{"no tenants", issuertest.Sign(t, jose.RS256, rsaKey, "one", claims("tenants", nil)), 403, "its claim tenants is missing or empty"},
		{"all tenants", issuertest.Sign(t, jose.RS256, rsaKey, "one", claims("tenants", "*")), 403, "cannot be a tenant"},
		{"two tenants in one", issuertest.Sign(t, jose.RS256, rsaKey, "one", claims("tenants", []string{"a|b"})), 403, "cannot be a tenant"},
		{"a tenant that is a number", issuertest.Sign(t, jose.RS256, rsaKey, "one", claims("tenants", 7)), 403, "missing or empty"},
		{"one tenant", issuertest.Sign(t, jose.RS256, rsaKey, "one", claims("tenants", "b")), 200, "b"},
		{"no rights", issuertest.Sign(t, jose.RS256, rsaKey, "one", claims("scope", nil)), 403, "lacks the right read"},
		{"changed claims", parts[0] + "." + strings.Split(issuertest.Sign(t, jose.RS256, rsaKey, "one", claims("tenants", "c")), ".")[1] + "." + parts[2], 401, "signature"},
		{"no signature", none, 401, "malformed"},
		{"an HMAC", hmac, 401, "malformed"},
		{"two dots", "a.b.c", 401, "malformed"},
	} {
		want(test.name, test.token, Read, test.status, test.body)
	}

	// An unknown key costs the issuer one request in ten seconds.
	next := issuertest.Sign(t, jose.ES256, ecKey, "two", claims())
	before := p.Fetches.Load()
	now = now.Add(11 * time.Second)
	for range 100 {
		want("a key that the issuer does not have", next, Read, 401, "no key of the issuer")
	}
	if n := p.Fetches.Load() - before; n != 1 {
		t.Errorf("%d fetches for 100 tokens with an unknown key", n)
	}
	p.Publish("two", ecKey.Public())
	now = now.Add(11 * time.Second)
	want("a new key", next, Read, 200, "a")
	want("the one before", good, Read, 200, "a")

	// While the issuer is away, its keys count for a day. A key that may be a new one is not refused for good.
	p.Away.Store(true)
	now = now.Add(10 * time.Minute)
	later := issuertest.Sign(t, jose.RS256, rsaKey, "one", claims())
	want("away", later, Read, 200, "a")
	want("away, and the key is unknown", issuertest.Sign(t, jose.RS256, rsaKey, "three", claims()), Read, 503, "cannot be fetched")
	now = now.Add(25 * time.Hour)
	want("away for more than a day", issuertest.Sign(t, jose.RS256, rsaKey, "one", claims()), Read, 503, "cannot be fetched")

	// A withdrawn key ends with the next fetch.
	p.Away.Store(false)
	p.Withdraw()
	now = now.Add(6 * time.Minute)
	if err := w.keys.Load().oidc.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	want("withdrawn", issuertest.Sign(t, jose.RS256, rsaKey, "one", claims()), Read, 401, "no key of the issuer")

	// Without the block no JWT counts, and with the same one the keys are kept.
	p.Away.Store(true)
	if err := w.load(); err != nil {
		t.Fatal(err)
	}
	want("read again", issuertest.Sign(t, jose.ES256, ecKey, "two", claims()), Read, 200, "a")
	w.write(t, file)
	if err := w.load(); err != nil {
		t.Fatal(err)
	}
	want("no issuer", issuertest.Sign(t, jose.ES256, ecKey, "two", claims()), Read, 401, "not known")
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
