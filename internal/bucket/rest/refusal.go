package rest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
)

// Refusal is a response that is not a success.
type Refusal struct {
	Status int
	// Code is the store's word for the reason, Message its text.
	Code, Message string
	// NoBucket says that the whole bucket is missing, Again that a repetition may succeed although the status
	// says otherwise.
	NoBucket, Again bool
}

// Error returns what the store said.
func (r *Refusal) Error() string {
	text := "status " + strconv.Itoa(r.Status)
	if r.Code != "" {
		text += " " + r.Code
	}
	if r.Message != "" {
		text += ": " + clip(r.Message)
	}
	return text
}

func clip(text string) string {
	const most = 300
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}

// Store names a store in errors.
type Store struct {
	// Bucket is the URL of the bucket, without parameters. Credentials says where they come from.
	Bucket, Credentials string
}

// Error gives an error of a request its class. It is a refusal, or an error from below HTTP. ctx is the one
// of the request, from [Observe].
func (s Store) Error(ctx context.Context, op, name string, err error) error {
	if name != "" { // else the whole bucket is listed
		op += " " + name
	}
	return fmt.Errorf("bucket %s: %s: %w", s.Bucket, op, s.class(ctx, err))
}

func (s Store) class(ctx context.Context, err error) error {
	var r *Refusal
	if !errors.As(err, &r) {
		return below(err)
	}
	switch {
	case r.NoBucket:
		return fmt.Errorf("%w: the bucket does not exist: %w", bucket.ErrDenied, err)
	case r.Status == http.StatusNotFound:
		return bucket.ErrNotFound
	case r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden:
		return fmt.Errorf("%w: %w; the credentials are those of %s", bucket.ErrDenied, err, s.Credentials)
	case r.Status == http.StatusRequestedRangeNotSatisfiable:
		return fmt.Errorf("%w: the range reaches past the end of the object", model.ErrInvalid)
	case r.Status == http.StatusTooManyRequests || r.Status == http.StatusServiceUnavailable:
		return &bucket.ThrottledError{After: observed(ctx), Err: err}
	case r.Again, r.Status == http.StatusRequestTimeout, r.Status == http.StatusConflict,
		r.Status >= 500 && r.Status != http.StatusNotImplemented:
		return fmt.Errorf("%w: %w", model.ErrTransient, err)
	}
	return fmt.Errorf("%w: %w", model.ErrInvalid, err)
}

// below classifies an error without a response.
func below(err error) error {
	// The URL may hold a signature.
	var request *url.Error
	if errors.As(err, &request) {
		err = request.Err
	}
	var certificate *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	switch {
	case errors.Is(err, model.ErrInvalid), errors.Is(err, model.ErrTransient):
		return err
	case errors.As(err, &certificate), errors.As(err, &authority):
		return fmt.Errorf("%w: %w; the parameter ca-file names the authorities to trust", model.ErrTransient, err)
	}
	return fmt.Errorf("%w: %w", model.ErrTransient, err)
}

// observation is what the transport saw of a request.
type observation struct{ after atomic.Int64 }

type observationKey struct{}

// Observe returns a context for one request, by which the transport passes on how long the store asks to
// wait. The clients of the stores drop that header.
func Observe(ctx context.Context) context.Context {
	return context.WithValue(ctx, observationKey{}, new(observation))
}

func observed(ctx context.Context) time.Duration {
	if o, ok := ctx.Value(observationKey{}).(*observation); ok {
		return time.Duration(o.after.Load())
	}
	return 0
}

// observer notes Retry-After.
type observer struct{ http.RoundTripper }

// RoundTrip sends a request.
func (o observer) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := o.RoundTripper.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if text := resp.Header.Get("Retry-After"); text != "" {
		if seen, ok := req.Context().Value(observationKey{}).(*observation); ok {
			seen.after.Store(int64(retryAfter(text, time.Now())))
		}
	}
	return resp, nil
}

// retryAfter reads seconds or a date. It returns at most an hour.
func retryAfter(text string, now time.Time) time.Duration {
	var d time.Duration
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		d = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		d = at.Sub(now)
	}
	return max(0, min(d, time.Hour))
}
