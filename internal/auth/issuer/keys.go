package issuer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
)

const (
	// fetchTimeout bounds a fetch of the keys, and so how long a token with an unknown key waits.
	fetchTimeout = 5 * time.Second
	// fetchEvery is how old keys become before they are fetched again: a key that the issuer has withdrawn is
	// accepted for about so long.
	fetchEvery = 5 * time.Minute
	// fetchPause is the least time between two fetches.
	fetchPause = 10 * time.Second
	// keepKeys is how long keys are used while the issuer is away.
	keepKeys = 24 * time.Hour
	// maxKeys and maxDocument bound what an issuer may send.
	maxKeys     = 64
	maxDocument = 1 << 20
)

// keySet has the keys of an issuer.
type keySet struct {
	issuer  string
	now     func() time.Time
	client  *http.Client
	metrics *Metrics

	turn chan struct{} // whoever holds its token may fetch, and use what follows
	// tried is when the last fetch began, and failed is its error.
	tried  time.Time
	failed error
	// keys were fetched at a time.
	keys    []jose.JSONWebKey
	fetched time.Time
}

func newKeySet(issuer string, now func() time.Time, m *Metrics) *keySet {
	return &keySet{
		issuer: issuer, now: now, metrics: m, turn: make(chan struct{}, 1),
		client: &http.Client{Timeout: fetchTimeout, Transport: bounded{http.DefaultTransport}},
	}
}

// awayKey is the key of a context for the error of an issuer that is away.
type awayKey struct{}

// VerifySignature returns the payload of a token that a key of the issuer has signed.
func (k *keySet) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	algs := make([]jose.SignatureAlgorithm, len(algorithms))
	for i, a := range algorithms {
		algs[i] = jose.SignatureAlgorithm(a)
	}
	jws, err := jose.ParseSignedCompact(token, algs)
	if err != nil {
		return nil, err
	}
	keys, err := k.find(ctx, jws.Signatures[0].Header.KeyID)
	if err != nil {
		if away, ok := ctx.Value(awayKey{}).(*error); ok {
			*away = err
		}
		return nil, err
	}
	for i := range keys {
		if payload, err := jws.Verify(&keys[i]); err == nil {
			return payload, nil
		}
	}
	return nil, errors.New("no key of the issuer has signed it")
}

// find returns the keys of a name; all, if the token names none. It fetches the keys if it has none of the
// name, unless it has tried just now. Its error is that of an issuer that is away.
func (k *keySet) find(ctx context.Context, name string) ([]jose.JSONWebKey, error) {
	if err := k.take(ctx); err != nil {
		return nil, err
	}
	defer k.give()
	found := k.named(name)
	if len(found) == 0 && k.now().Sub(k.tried) >= fetchPause {
		k.fetch(ctx)
		found = k.named(name)
	}
	if len(found) == 0 && (k.failed != nil || k.tried.IsZero()) {
		return nil, fmt.Errorf("the keys of the issuer %s cannot be fetched: %w", k.issuer, k.failed)
	}
	return found, nil
}

func (k *keySet) take(ctx context.Context) error {
	select {
	case k.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (k *keySet) give() { <-k.turn }

// named returns the keys of a name that are not too old. REQUIRES: the turn is held.
func (k *keySet) named(name string) (found []jose.JSONWebKey) {
	if k.now().Sub(k.fetched) > keepKeys {
		return nil
	}
	if name == "" {
		return k.keys
	}
	for i := range k.keys {
		if k.keys[i].KeyID == name {
			found = append(found, k.keys[i])
		}
	}
	return found
}

// refresh fetches the keys if they are due.
func (k *keySet) refresh(ctx context.Context) error {
	if err := k.take(ctx); err != nil {
		return err
	}
	defer k.give()
	now := k.now()
	if now.Sub(k.fetched) < fetchEvery || now.Sub(k.tried) < fetchPause {
		return nil
	}
	k.fetch(ctx)
	return k.failed
}

// fetch fetches the keys. After an error they are those of before. REQUIRES: the turn is held.
func (k *keySet) fetch(ctx context.Context) {
	// A client that goes away must not fail the fetch for the others.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
	defer cancel()
	k.tried = k.now()
	var keys []jose.JSONWebKey
	if keys, k.failed = k.request(ctx); k.failed != nil {
		k.metrics.fetches.WithLabelValues("failed").Inc()
		return
	}
	k.metrics.fetches.WithLabelValues("succeeded").Inc()
	k.keys, k.fetched = keys, k.now()
	k.metrics.fetched.Set(float64(k.fetched.Unix()))
}

// request asks the issuer where its keys are, and for them.
func (k *keySet) request(ctx context.Context) ([]jose.JSONWebKey, error) {
	ctx = oidc.ClientContext(ctx, k.client)
	provider, err := oidc.NewProvider(ctx, k.issuer)
	if err != nil {
		return nil, err
	}
	var at struct {
		URL string `json:"jwks_uri"`
	}
	if err := provider.Claims(&at); err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.URL, nil)
	if err != nil {
		return nil, err
	}
	resp, err := k.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: HTTP %d", at.URL, resp.StatusCode)
	}
	var set jose.JSONWebKeySet
	if err := json.NewDecoder(resp.Body).Decode(&set); err != nil {
		return nil, fmt.Errorf("%s: %w", at.URL, err)
	}
	keys := set.Keys[:0]
	for _, key := range set.Keys {
		// A set may hold keys that encrypt. Only public keys may verify.
		if key.Use != "enc" && key.Valid() && key.IsPublic() {
			keys = append(keys, key)
		}
	}
	if n := len(keys); n == 0 || n > maxKeys {
		return nil, fmt.Errorf("%s: expected 1 to %d keys that sign, got %d", at.URL, maxKeys, n)
	}
	return keys, nil
}

// bounded bounds the bodies of responses.
type bounded struct{ http.RoundTripper }

// RoundTrip makes a request.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxDocument), resp.Body}
	}
	return resp, err
}
