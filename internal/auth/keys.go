package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/shaledb/shale/internal/model"
)

// maxTokens and maxFileBytes bound the file.
const (
	maxTokens    = 100_000
	maxFileBytes = 64 << 20
)

// Grant is what a token or a certificate stands for. It never changes.
type Grant struct {
	Name string
	// Tenants are those that its holder may name, the first of which counts if it names none. Empty: any.
	Tenants []string
	by      string // what was shown
	rights  [Peer + 1]bool
	expires time.Time // zero: never
	sum     [sha256.Size]byte
}

// What clients show.
const (
	byToken       = "token"
	byCertificate = "certificate"
	byJWT         = "JWT"
)

// May reports whether the grant has a right.
func (g *Grant) May(r Right) bool { return g.rights[r] }

// String returns the grant in the words of a refusal.
func (g *Grant) String() string { return fmt.Sprintf("the %s %q", g.by, g.Name) }

// Keys are the tokens and the clients of a file. They never change.
type Keys struct {
	bySum  map[[sha256.Size]byte]*Grant
	byName map[string]*Grant // by a name of the certificate
	oidc   *identities       // nil: no JWT is accepted
}

// fileToken is a token as the file has it.
type fileToken struct {
	Name    string   `yaml:"name"`
	SHA256  string   `yaml:"sha256"`
	Tenants []string `yaml:"tenants"`
	Rights  []string `yaml:"rights"`
	Expires string   `yaml:"expires"`
}

// ParseKeys reads a file of tokens. An error names the token by its number, from 1, and never quotes a hash:
// it may be a token that was written there by mistake.
func ParseKeys(text []byte) (*Keys, error) {
	var file struct {
		Tokens  []fileToken  `yaml:"tokens"`
		Clients []fileClient `yaml:"clients"`
		OIDC    *fileOIDC    `yaml:"oidc"`
	}
	if len(text) > maxFileBytes {
		return nil, fmt.Errorf("expected at most %d bytes, got %d", maxFileBytes, len(text))
	}
	if err := yaml.UnmarshalWithOptions(text, &file, yaml.DisallowUnknownField()); err != nil {
		return nil, fmt.Errorf("expected lists under the keys tokens and clients, and the key oidc: %s", yaml.FormatError(err, false, false))
	}
	if n := max(len(file.Tokens), len(file.Clients)); n > maxTokens {
		return nil, fmt.Errorf("expected at most %d tokens and clients each, got %d", maxTokens, n)
	}
	k := &Keys{bySum: make(map[[sha256.Size]byte]*Grant, len(file.Tokens)), byName: make(map[string]*Grant, len(file.Clients))}
	for i := range file.Tokens {
		g, err := file.Tokens[i].grant()
		if err != nil {
			return nil, fmt.Errorf("token %d (%.60q): %w", i+1, file.Tokens[i].Name, err)
		}
		if other := k.bySum[g.sum]; other != nil {
			return nil, fmt.Errorf("token %d (%.60q): has the sha256 of %.60q", i+1, g.Name, other.Name)
		}
		k.bySum[g.sum] = g
	}
	for i := range file.Clients {
		g, key, err := file.Clients[i].grant()
		if err != nil {
			return nil, fmt.Errorf("client %d (%.60q): %w", i+1, file.Clients[i].Name, err)
		}
		if other := k.byName[key]; other != nil {
			return nil, fmt.Errorf("client %d (%.60q): has the name %.160q of %.60q", i+1, g.Name, key, other.Name)
		}
		k.byName[key] = g
	}
	if file.OIDC != nil {
		var err error
		if k.oidc, err = file.OIDC.identities(); err != nil {
			return nil, fmt.Errorf("oidc: %w", err)
		}
	}
	return k, nil
}

// grant checks the fields of a token.
func (f *fileToken) grant() (*Grant, error) {
	g, err := newGrant(f.Name, f.Tenants, f.Rights)
	if err != nil {
		return nil, err
	}
	g.by = byToken
	sum, err := hex.DecodeString(f.SHA256)
	if err != nil || len(sum) != len(g.sum) {
		return nil, fmt.Errorf("sha256: expected %d hexadecimal digits, as `shale token new` prints them", 2*len(g.sum))
	}
	copy(g.sum[:], sum)
	if f.Expires != "" {
		if g.expires, err = time.Parse(time.RFC3339, f.Expires); err != nil {
			return nil, fmt.Errorf("expires: expected a time such as 2030-01-31T00:00:00Z, got %.60q", f.Expires)
		}
	}
	return g, nil
}

// newGrant checks what tokens and clients have in common.
func newGrant(name string, tenants, rights []string) (*Grant, error) {
	g := &Grant{Name: name}
	switch {
	case name == "":
		return nil, fmt.Errorf("name: has no value; audit logs need it")
	case len(rights) == 0:
		return nil, fmt.Errorf("rights: expected some of read, write, rules, delete, admin, peer")
	case len(tenants) == 0:
		return nil, fmt.Errorf(`tenants: expected names of tenants, or ["*"] for all`)
	}
	for _, name := range rights {
		r, err := ParseRight(name)
		if err != nil {
			return nil, fmt.Errorf("rights: %w", err)
		}
		g.rights[r] = true
	}
	if !slices.Equal(tenants, []string{"*"}) {
		g.Tenants = tenants
	}
	for _, t := range g.Tenants {
		if err := model.CheckTenant(t); err != nil || t == "*" {
			return nil, fmt.Errorf("tenants: expected names of tenants, or * alone for all, got %.60q", t)
		}
	}
	return g, nil
}

// Find returns the grant of a token, or nil.
//
// The table is asked for the hash of the token, whose bits a client cannot choose one by one. So the time
// that this takes says nothing of a token that is nearly right. The comparison takes as long wherever the
// hashes differ.
func (k *Keys) Find(token string) *Grant {
	sum := sha256.Sum256([]byte(token))
	g := k.bySum[sum]
	if g == nil || subtle.ConstantTimeCompare(g.sum[:], sum[:]) != 1 {
		return nil
	}
	return g
}
