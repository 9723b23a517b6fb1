package auth

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// maxHeader bounds the header with the token.
const maxHeader = 8 << 10

// Denied is the refusal of a request.
type Denied struct {
	// Status is 401 if another token may help, 403 if this one is known, and 503 if that cannot be told now.
	Status int
	// Reason is a word for metrics.
	Reason string
	text   string
}

// Error returns what is missing.
func (d *Denied) Error() string { return d.text }

// The reasons.
const (
	missing = "missing"
	invalid = "invalid"
	expired = "expired"
	right   = "right"
	tenant  = "tenant"
	// The issuer of a JWT cannot be reached, and its keys are not known.
	unreachable = "unreachable"
)

func unknown(reason, text string) *Denied { return &Denied{http.StatusUnauthorized, reason, text} }

// tokenOf returns the token of a request: the credentials of Bearer, or the password of Basic with any name.
func tokenOf(h http.Header) (string, *Denied) {
	values := h["Authorization"]
	switch {
	case len(values) == 0:
		return "", unknown(missing, "a token is required: send Authorization: Bearer TOKEN, or TOKEN as the password of Basic")
	case len(values) > 1:
		return "", unknown(invalid, fmt.Sprintf("expected one header Authorization, got %d", len(values)))
	case len(values[0]) > maxHeader:
		return "", unknown(invalid, fmt.Sprintf("expected a header Authorization of at most %d bytes, got %d", maxHeader, len(values[0])))
	}
	scheme, rest, _ := strings.Cut(values[0], " ")
	rest = strings.TrimSpace(rest)
	switch {
	case strings.EqualFold(scheme, "Bearer") && rest != "":
		return rest, nil
	case strings.EqualFold(scheme, "Basic"):
		plain, err := base64.StdEncoding.DecodeString(rest)
		_, password, found := strings.Cut(string(plain), ":")
		if err == nil && found && password != "" {
			return password, nil
		}
	}
	return "", unknown(invalid, "expected Authorization: Bearer TOKEN, or Basic with TOKEN as the password")
}

// admit finds the grant of a request, and checks it. It names the first tenant of the grant in a request that
// names none. A certificate counts only in a request without a token.
func (k *Keys) admit(ctx context.Context, h http.Header, state *tls.ConnectionState, needs Right, now time.Time) (g *Grant, denied *Denied) {
	if c := certificateOf(state); c != nil && len(h["Authorization"]) == 0 {
		g, denied = k.admitCertificate(c, now)
	} else {
		g, denied = k.admitToken(ctx, h, now)
	}
	if denied != nil {
		return g, denied
	}
	if denied := g.check(needs); denied != nil {
		return g, denied
	}
	if err := g.setTenant(h); err != nil {
		return g, &Denied{http.StatusForbidden, tenant, err.Error()}
	}
	return g, nil
}

// admitToken finds the grant of the token of a request.
func (k *Keys) admitToken(ctx context.Context, h http.Header, now time.Time) (*Grant, *Denied) {
	token, denied := tokenOf(h)
	if denied != nil {
		return nil, denied
	}
	g := k.Find(token)
	switch {
	case g == nil && k.oidc != nil && isJWT(token):
		return k.oidc.admit(ctx, token)
	case g == nil:
		return nil, unknown(invalid, "the token is not known")
	case !g.expires.IsZero() && !now.Before(g.expires):
		return g, unknown(expired, fmt.Sprintf("%s has expired at %s", g, g.expires.UTC().Format(time.RFC3339)))
	}
	return g, nil
}

// setTenant checks the tenants of a request.
func (g *Grant) setTenant(h http.Header) error {
	if len(g.Tenants) == 0 {
		return nil
	}
	values := h[http.CanonicalHeaderKey(model.TenantHeader)]
	if len(values) == 0 || len(values) == 1 && values[0] == "" {
		h.Set(model.TenantHeader, g.Tenants[0])
		return nil
	}
	if len(values) > 1 {
		return errors.New("expected one header " + model.TenantHeader)
	}
	for name := range strings.SplitSeq(values[0], "|") {
		if !slices.Contains(g.Tenants, name) {
			return fmt.Errorf("%s is not for the tenant %.160q", g, name)
		}
	}
	return nil
}
