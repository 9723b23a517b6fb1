package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// Server is a server to talk to, as one tenant. Several goroutines may use it.
//
// A failed request has an error of class [model.ErrTransient] if a later attempt may succeed: the server
// cannot be reached, starts or is overloaded. An error of class [model.ErrInvalid] stays.
type Server struct {
	URL    string
	Tenant string      // as X-Scope-OrgID, unless it is empty
	Header http.Header // of every request
	// HTTP is the client to use; nil for the default one, which asks for gzip and keeps connections open.
	HTTP    *http.Client
	Timeout time.Duration // of one attempt; 0: only the context bounds it
	Retry   *Retry        // nil: every request is tried once
}

// maxResponseBytes keeps a wrong URL from filling the memory.
const maxResponseBytes = 4 << 30

// As returns the server as another tenant. It shares the connections and the patience.
func (s *Server) As(tenant string) *Server {
	other := *s
	other.Tenant = tenant
	return &other
}

// Get requests a path below the URL, and returns the body of a response with status 2xx. Any other status is
// a [StatusError].
func (s *Server) Get(ctx context.Context, path string, query url.Values) ([]byte, error) {
	text, _, err := s.request(ctx, http.MethodGet, path, query, nil, nil)
	return text, err
}

// PostForm is Get with the parameters in a form, which may be long.
func (s *Server) PostForm(ctx context.Context, path string, form url.Values) ([]byte, error) {
	text, _, err := s.postForm(ctx, path, form, http.Header{})
	return text, err
}

// postForm returns the header of the response, too.
func (s *Server) postForm(ctx context.Context, path string, form url.Values, header http.Header) ([]byte, http.Header, error) {
	header.Set("Content-Type", "application/x-www-form-urlencoded")
	return s.request(ctx, http.MethodPost, path, nil, header, []byte(form.Encode()))
}

// Post sends a body that the header describes.
func (s *Server) Post(ctx context.Context, path string, header http.Header, body []byte) ([]byte, error) {
	text, _, err := s.request(ctx, http.MethodPost, path, nil, header, body)
	return text, err
}

// request returns the body of a response and its header.
func (s *Server) request(ctx context.Context, method, path string, query url.Values, header http.Header, body []byte) (text []byte, got http.Header, err error) {
	target, err := s.endpoint(path, query)
	if err != nil {
		return nil, nil, err
	}
	err = s.Retry.until(ctx, func() (err error) {
		text, got, err = s.attempt(ctx, method, target, header, body)
		return err
	})
	return text, got, err
}

// endpoint returns the URL of a path.
func (s *Server) endpoint(path string, query url.Values) (string, error) {
	base, err := url.Parse(s.URL)
	if err != nil {
		return "", invalid(err)
	}
	if path != "" { // joining cleans the path, and a server may insist on a slash at the end
		base = base.JoinPath(path)
	}
	if len(query) > 0 {
		base.RawQuery = query.Encode()
	}
	return base.String(), nil
}

// header returns the head of a request with the given headers.
func (s *Server) header(more http.Header) http.Header {
	h := http.Header{}
	maps.Copy(h, s.Header)
	maps.Copy(h, more)
	if s.Tenant != "" {
		h.Set("X-Scope-OrgID", s.Tenant)
	}
	return h
}

// attempt makes a request once, and reads the whole response.
func (s *Server) attempt(ctx context.Context, method, target string, header http.Header, body []byte) ([]byte, http.Header, error) {
	if s.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, s.Timeout, fmt.Errorf("no response within %s", s.Timeout))
		defer cancel()
	}
	req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return nil, nil, invalid(err)
	}
	req.Header = s.header(header)
	resp, err := cmp.Or(s.HTTP, http.DefaultClient).Do(req)
	if err != nil {
		return nil, nil, s.unreachable(ctx, "requesting", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxResponseBytes+1))
	switch {
	case err != nil:
		return nil, nil, s.unreachable(ctx, "reading the response of", err)
	case len(text) > maxResponseBytes:
		return nil, nil, invalid(fmt.Errorf("%s: the response has more than %d bytes", s.URL, maxResponseBytes))
	case resp.StatusCode/100 != 2:
		e := newStatusError(target, resp.StatusCode, text)
		e.RetryAfter = retryAfter(resp.Header.Get("Retry-After"))
		return nil, nil, e
	}
	return text, resp.Header, nil
}

// unreachable returns the error of a request that got no response.
func (s *Server) unreachable(ctx context.Context, doing string, err error) error {
	var u *url.Error
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		err = context.Cause(ctx)
	case errors.As(err, &u):
		err = u.Err // without the whole URL, which may hold a long query
	}
	return &classedError{fmt.Errorf("%s %s: %w", doing, s.URL, err), model.ErrTransient}
}

// StatusError is a response whose status is not 2xx.
type StatusError struct {
	Status int
	// RetryAfter is how long the server asks to wait; 0: it does not say.
	RetryAfter time.Duration
	text       string
}

// retryAfter reads the header of that name: seconds, or a date.
func retryAfter(text string) time.Duration {
	if s, err := strconv.ParseInt(text, 10, 32); err == nil {
		return max(0, time.Duration(s)*time.Second)
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

// newStatusError takes the text of an error from the response of any API.
func newStatusError(target string, status int, body []byte) *StatusError {
	var e Envelope
	if json.Unmarshal(body, &e) == nil && e.Error != "" {
		return &StatusError{Status: status, text: fmt.Sprintf("%s: %s (HTTP %d)", e.ErrorType, e.Error, status)}
	}
	path, _, _ := strings.Cut(target, "?")
	return &StatusError{Status: status, text: fmt.Sprintf("%s: HTTP %d: %.500s", path, status, bytes.TrimSpace(body))}
}

// Error returns what the server said.
func (e *StatusError) Error() string { return e.text }

// Unwrap returns the class.
func (e *StatusError) Unwrap() error {
	switch e.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable:
		return model.ErrTransient
	}
	return model.ErrInvalid
}

// classedError is an error with a class that its text does not name.
type classedError struct {
	error
	class error
}

// Unwrap returns the error and its class.
func (e *classedError) Unwrap() []error { return []error{e.error, e.class} }

// invalid returns the error of a request or response that a retry would not mend.
func invalid(err error) error { return &classedError{err, model.ErrInvalid} }
