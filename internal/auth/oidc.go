package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/auth/issuer"
	"github.com/shaledb/shale/internal/model"
)

// fileOIDC says which JWTs are accepted, as the file has it.
type fileOIDC struct {
	Issuer       string   `yaml:"issuer"`
	Audience     string   `yaml:"audience"`
	TenantsClaim string   `yaml:"tenants_claim"`
	RightsClaim  string   `yaml:"rights_claim"`
	Tenants      []string `yaml:"tenants"`
	Rights       []string `yaml:"rights"`
}

// identities gives JWTs their tenants and rights.
type identities struct {
	fileOIDC
	everyone *Grant // what the file gives every identity
	*issuer.Issuer
}

// identities checks the fields.
func (f *fileOIDC) identities() (*identities, error) {
	switch {
	case (f.TenantsClaim == "") == (len(f.Tenants) == 0):
		return nil, errors.New("expected one of tenants_claim and tenants")
	case (f.RightsClaim == "") == (len(f.Rights) == 0):
		return nil, errors.New("expected one of rights_claim and rights")
	}
	tenants, rights := f.Tenants, f.Rights
	if len(tenants) == 0 {
		tenants = []string{model.DefaultTenant} // the claim replaces it
	}
	if len(rights) == 0 {
		rights = []string{Read.String()}
	}
	g, err := newGrant("everyone", tenants, rights)
	return &identities{fileOIDC: *f, everyone: g}, err
}

// open makes the issuer. One of the same settings is taken over with its keys.
func (d *identities) open(before *identities, now func() time.Time, m *issuer.Metrics) (err error) {
	s := issuer.Settings{URL: d.fileOIDC.Issuer, Audience: d.fileOIDC.Audience}
	if before != nil && before.Issuer.Settings == s {
		d.Issuer = before.Issuer
		return nil
	}
	d.Issuer, err = issuer.New(s, now, m)
	return err
}

// isJWT reports whether a token has the form of a JWT. Those of Shale have no dot.
func isJWT(token string) bool { return strings.Count(token, ".") == 2 }

// admit finds the grant of a JWT.
func (d *identities) admit(ctx context.Context, token string) (*Grant, *Denied) {
	t, err := d.Verify(ctx, token)
	switch {
	case issuer.Expired(err):
		return nil, unknown(expired, "the JWT has expired: "+err.Error())
	case errors.Is(err, model.ErrTransient):
		return nil, &Denied{http.StatusServiceUnavailable, unreachable, err.Error()}
	case err != nil:
		return nil, unknown(invalid, "the JWT is not accepted: "+err.Error())
	}
	var claims map[string]any
	if err := t.Claims(&claims); err != nil {
		return nil, unknown(invalid, "the JWT is not accepted: "+err.Error())
	}
	g := *d.everyone
	g.Name, g.by = t.Subject[:min(len(t.Subject), maxSubject)], byJWT
	if d.TenantsClaim != "" {
		g.Tenants = words(claims[d.TenantsClaim])
		for _, name := range g.Tenants {
			if model.CheckTenant(name) != nil || name == "*" { // only the file lets into all
				return &g, &Denied{http.StatusForbidden, tenant, fmt.Sprintf("%s has a claim %s with %.160q, which cannot be a tenant", &g, d.TenantsClaim, name)}
			}
		}
		if len(g.Tenants) == 0 {
			return &g, &Denied{http.StatusForbidden, tenant, fmt.Sprintf("%s has no tenant: its claim %s is missing or empty", &g, d.TenantsClaim)}
		}
	}
	if d.RightsClaim != "" {
		g.rights = [Peer + 1]bool{}
		for _, name := range words(claims[d.RightsClaim]) {
			if r, err := ParseRight(name); err == nil { // a claim may have words for other services
				g.rights[r] = true
			}
		}
	}
	return &g, nil
}

// maxSubject bounds a name in refusals and in the audit log.
const maxSubject = 200

// words returns the words of a claim: a list, or a text as the claim scope is one.
func words(claim any) (all []string) {
	switch c := claim.(type) {
	case string:
		return strings.Fields(c)
	case []any:
		for _, v := range c {
			if text, ok := v.(string); ok {
				all = append(all, text)
			}
		}
	}
	return all
}
