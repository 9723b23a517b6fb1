package issuer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/shaledb/shale/internal/model"
)

// Settings name an issuer. They are comparable.
type Settings struct {
	// URL is that of the issuer, as in the claim iss.
	URL string
	// Audience must be in the claim aud.
	Audience string
}

// skew is how far the clocks of the issuer and of this machine may be apart.
const skew = 30 * time.Second

// algorithms are those that verify with a public key. A token cannot choose none, or an HMAC whose secret
// would be the public key.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA}

// Issuer verifies tokens. It is safe for concurrent use.
type Issuer struct {
	Settings
	keys     *keySet
	verifier *oidc.IDTokenVerifier
}

// New returns an issuer, whose keys are not fetched yet. now is the clock.
func New(s Settings, now func() time.Time, m *Metrics) (*Issuer, error) {
	u, err := url.Parse(s.URL)
	switch {
	case err != nil || u.Host == "":
		return nil, fmt.Errorf("issuer: expected a URL such as https://issuer.example, got %.200q", s.URL)
	case u.Scheme != "https" && !(u.Scheme == "http" && isLoopback(u.Hostname())):
		return nil, fmt.Errorf("issuer: expected https, got %.200q: whoever changes what is sent could hand out keys", s.URL)
	case s.Audience == "":
		return nil, errors.New("audience: has no value; tokens for other services would be accepted")
	}
	i := &Issuer{Settings: s, keys: newKeySet(s.URL, now, m)}
	i.verifier = oidc.NewVerifier(s.URL, i.keys, &oidc.Config{
		ClientID: s.Audience, SupportedSigningAlgs: algorithms,
		// go-oidc allows five minutes before nbf by itself.
		Now: func() time.Time { return now().Add(-skew) },
	})
	return i, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Verify returns the claims of a token. Its error is of class transient while the key may be one that cannot
// be fetched, and otherwise of class invalid.
func (i *Issuer) Verify(ctx context.Context, token string) (*oidc.IDToken, error) {
	var away error
	t, err := i.verifier.Verify(context.WithValue(ctx, awayKey{}, &away), token)
	switch {
	case err == nil:
		return t, nil
	case away != nil:
		return nil, fmt.Errorf("%w: %w", model.ErrTransient, away)
	}
	return nil, fmt.Errorf("%w: %w", model.ErrInvalid, err)
}

// Expired reports whether an error of Verify is that of a token that has ended.
func Expired(err error) bool {
	var e *oidc.TokenExpiredError
	return errors.As(err, &e)
}

// Refresh fetches the keys if they are due.
func (i *Issuer) Refresh(ctx context.Context) error { return i.keys.refresh(ctx) }
