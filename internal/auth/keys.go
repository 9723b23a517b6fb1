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

// Grant is what a token stands for. It never changes.
type Grant struct {
	Name string
	// Tenants are those that the token may name, the first of which counts if it names none. Empty: any.
	Tenants []string
	rights  [Peer + 1]bool
	expires time.Time // zero: never
	sum     [sha256.Size]byte
}

// May reports whether the token has a right.
func (g *Grant) May(r Right) bool { return g.rights[r] }

// Keys are the tokens of a file. They never change.
type Keys struct {
	bySum map[[sha256.Size]byte]*Grant
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
		Tokens []fileToken `yaml:"tokens"`
	}
	if len(text) > maxFileBytes {
		return nil, fmt.Errorf("expected at most %d bytes, got %d", maxFileBytes, len(text))
	}
	if err := yaml.UnmarshalWithOptions(text, &file, yaml.DisallowUnknownField()); err != nil {
		return nil, fmt.Errorf("expected a list under the key tokens: %s", yaml.FormatError(err, false, false))
	}
	if len(file.Tokens) > maxTokens {
		return nil, fmt.Errorf("expected at most %d tokens, got %d", maxTokens, len(file.Tokens))
	}
	k := &Keys{bySum: make(map[[sha256.Size]byte]*Grant, len(file.Tokens))}
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
	return k, nil
}

// grant checks the fields of a token.
func (f *fileToken) grant() (*Grant, error) {
	g := &Grant{Name: f.Name}
	sum, err := hex.DecodeString(f.SHA256)
	switch {
	case f.Name == "":
		return nil, fmt.Errorf("name: has no value; audit logs need it")
	case err != nil || len(sum) != len(g.sum):
		return nil, fmt.Errorf("sha256: expected %d hexadecimal digits, as `shale token new` prints them", 2*len(g.sum))
	case len(f.Rights) == 0:
		return nil, fmt.Errorf("rights: expected some of read, write, rules, delete, admin, peer")
	case len(f.Tenants) == 0:
		return nil, fmt.Errorf(`tenants: expected names of tenants, or ["*"] for all`)
	}
	copy(g.sum[:], sum)
	for _, name := range f.Rights {
		r, err := ParseRight(name)
		if err != nil {
			return nil, fmt.Errorf("rights: %w", err)
		}
		g.rights[r] = true
	}
	if !slices.Equal(f.Tenants, []string{"*"}) {
		g.Tenants = f.Tenants
	}
	for _, t := range g.Tenants {
		if err := model.CheckTenant(t); err != nil || t == "*" {
			return nil, fmt.Errorf("tenants: expected names of tenants, or * alone for all, got %.60q", t)
		}
	}
	if f.Expires != "" {
		if g.expires, err = time.Parse(time.RFC3339, f.Expires); err != nil {
			return nil, fmt.Errorf("expires: expected a time such as 2030-01-31T00:00:00Z, got %.60q", f.Expires)
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
