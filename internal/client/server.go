package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Server is a server to query, as one tenant.
type Server struct{ URL, Tenant string }

// Envelope is the outer object of every response of the Prometheus API.
type Envelope struct {
	Status    string          `json:"status"`
	Data      json.RawMessage `json:"data"`
	ErrorType string          `json:"errorType"`
	Error     string          `json:"error"`
	Warnings  []string        `json:"warnings"`
	Infos     []string        `json:"infos"`
}

// maxResponseBytes keeps a wrong URL from filling the memory.
const maxResponseBytes = 4 << 30

// Ask sends a form to an endpoint and returns the body of a response with status 2xx. Another status is an
// error of type statusError.
func (s *Server) Ask(ctx context.Context, endpoint string, form url.Values) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if s.Tenant != "" {
		req.Header.Set("X-Scope-OrgID", s.Tenant)
	}
	failed := func(doing string, err error) error {
		var u *url.Error
		switch {
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			err = context.Cause(ctx)
		case errors.As(err, &u):
			err = u.Err // without the URL, which has been said
		}
		return fmt.Errorf("%s %s: %w", doing, s.URL, err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, failed("requesting", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxResponseBytes))
	if err != nil {
		return nil, failed("reading the response of", err)
	}
	if resp.StatusCode/100 == 2 {
		return body, nil
	}
	said := fmt.Sprintf("%s: HTTP %d: %.500s", endpoint, resp.StatusCode, strings.TrimSpace(string(body)))
	var a Envelope
	if json.Unmarshal(body, &a) == nil && a.Error != "" {
		said = fmt.Sprintf("%s: %s (HTTP %d)", a.ErrorType, a.Error, resp.StatusCode)
	}
	return nil, &StatusError{resp.StatusCode, said}
}

// StatusError is a response whose status is not 2xx.
type StatusError struct {
	Status int
	said   string
}

func (e *StatusError) Error() string { return e.said }
