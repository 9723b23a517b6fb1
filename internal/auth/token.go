package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
	"time"
)

// Prefix lets people, and scanners for secrets, tell what a token is for.
const Prefix = "shale_"

// tokenBytes gives 32 characters.
const tokenBytes = 20

// Sum returns the hash of a token in hexadecimal, as files have it.
func Sum(token string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(token))) }

// Request is what a new token is to be. The tags make the fields flags.
type Request struct {
	Name    string        `required:"" placeholder:"NAME" help:"Client that gets the token, as the audit log shows it."`
	Tenants []string      `required:"" placeholder:"NAME" help:"Tenants that the token is for; * alone for all."`
	Rights  []string      `required:"" placeholder:"RIGHT" help:"What it may do: read, write, rules, delete, admin, peer."`
	Expires time.Duration `type:"time" placeholder:"TIME" help:"How long the token is valid. Default: no expiry."`
}

// Make returns a random token, and its line for the file.
func (r *Request) Make(now time.Time) (token, line string, err error) {
	b := make([]byte, tokenBytes)
	_, _ = rand.Read(b) // never fails
	token = Prefix + strings.ToLower(base32.StdEncoding.EncodeToString(b))
	tenants := make([]string, len(r.Tenants))
	for i, t := range r.Tenants {
		tenants[i] = fmt.Sprintf("%q", t)
	}
	line = fmt.Sprintf("- {name: %q, sha256: %q, tenants: [%s], rights: [%s]", r.Name, Sum(token), strings.Join(tenants, ", "), strings.Join(r.Rights, ", "))
	if r.Expires > 0 {
		line += fmt.Sprintf(", expires: %q", now.Add(r.Expires).UTC().Format(time.RFC3339))
	}
	line += "}"
	_, err = ParseKeys([]byte("tokens:\n" + line))
	return token, line, err
}
