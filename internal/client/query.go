package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/prometheus/prompb"

	"github.com/shaledb/shale/internal/model"
)

// Reader reads data back over the APIs of Prometheus and Loki, and retries. Several goroutines may use it.
type Reader struct {
	URL    string // of the server, without /api/v1
	Client *http.Client
	// Patience is how long requests are retried while the server is away, starting or overloaded. After one
	// request has failed in this way, no request is retried until one succeeds.
	Patience time.Duration
	tired    atomic.Bool
}

// queryTimeout bounds one attempt.
const queryTimeout = 2 * time.Minute

// Series is a series of a query result.
type Series struct {
	Metric map[string]string `json:"metric"`
	Values []Sample          `json:"values"`
	// Value is the single sample of an instant vector.
	Value Sample `json:"value"`
}

// Sample is [seconds, "value"] in JSON. Only remote read gives histograms.
type Sample struct {
	Ms        int64
	Bits      uint64
	Histogram *prompb.Histogram
}

// UnmarshalJSON reads a sample. Times are written with at most three decimals, which a float holds exactly
// enough.
func (s *Sample) UnmarshalJSON(data []byte) error {
	var pair [2]json.RawMessage
	if err := json.Unmarshal(data, &pair); err != nil {
		return err
	}
	seconds, err := strconv.ParseFloat(string(pair[0]), 64)
	if err != nil {
		return err
	}
	var text string
	if err := json.Unmarshal(pair[1], &text); err != nil {
		return err
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return err
	}
	s.Ms, s.Bits = int64(math.Round(seconds*1000)), math.Float64bits(value)
	return nil
}

// Query evaluates an expression at a time in Unix milliseconds.
func (r *Reader) Query(ctx context.Context, tenant, expr string, ms int64) ([]Series, error) {
	return r.curves(ctx, tenant, "query", url.Values{"query": {expr}, "time": {Seconds(ms)}})
}

// QueryRange evaluates an expression at times in Unix milliseconds, step apart.
func (r *Reader) QueryRange(ctx context.Context, tenant, expr string, from, to, step int64) ([]Series, error) {
	return r.curves(ctx, tenant, "query_range", url.Values{"query": {expr}, "start": {Seconds(from)}, "end": {Seconds(to)}, "step": {Seconds(step)}})
}

// Seconds writes milliseconds as the API wants them. They must not be negative.
func Seconds(ms int64) string { return fmt.Sprintf("%d.%03d", ms/1000, ms%1000) }

func (r *Reader) curves(ctx context.Context, tenant, endpoint string, form url.Values) ([]Series, error) {
	var got struct {
		Result []Series `json:"result"`
	}
	err := r.API(ctx, tenant, http.MethodPost, endpoint, form, &got)
	return got.Result, err
}

// API asks an endpoint that responds in JSON, and decodes the data of the response.
func (r *Reader) API(ctx context.Context, tenant, method, endpoint string, form url.Values, into any) error {
	what := endpoint + " " + form.Get("query") + form.Get("metric")
	return r.patiently(ctx, func() error {
		target, body := r.endpoint(endpoint), ""
		if method == http.MethodPost {
			body = form.Encode()
		} else {
			target += "?" + form.Encode()
		}
		req, err := http.NewRequest(method, target, strings.NewReader(body))
		if err != nil {
			return fmt.Errorf("%w: load: %s: %w", model.ErrInvalid, what, err)
		}
		if method == http.MethodPost {
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		code, data, err := r.do(ctx, tenant, req)
		var got Envelope
		jsonErr := json.Unmarshal(data, &got)
		if err := classify(what, code, got.Error, err); err != nil {
			return err
		}
		if jsonErr == nil && got.Status == "success" {
			jsonErr = json.Unmarshal(got.Data, into)
		}
		if jsonErr != nil || got.Status != "success" {
			return fmt.Errorf("%w: load: %s: the response makes no sense: %.200q", model.ErrInvalid, what, data)
		}
		return nil
	})
}

func (r *Reader) endpoint(name string) string {
	return strings.TrimRight(r.URL, "/") + "/api/v1/" + name
}

// patiently retries while the server is away, starting or overloaded.
func (r *Reader) patiently(ctx context.Context, ask func() error) error {
	deadline := time.Now().Add(r.Patience)
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		err := ask()
		if err == nil || !errors.Is(err, model.ErrTransient) {
			r.tired.Store(false)
			return err
		}
		if time.Now().After(deadline) || r.tired.Load() {
			r.tired.Store(true)
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: load: query: %w", model.ErrClosed, ctx.Err())
		case <-time.After(wait):
		}
	}
}

// do makes one attempt and reads the whole response.
func (r *Reader) do(ctx context.Context, tenant string, req *http.Request) (code int, data []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	if tenant != "" {
		req.Header.Set("X-Scope-OrgID", tenant)
	}
	resp, err := r.Client.Do(req.WithContext(ctx))
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	data, err = io.ReadAll(resp.Body)
	return resp.StatusCode, data, err
}

// classify returns the error of a failed request, or nil.
func classify(what string, code int, text string, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("%w: load: %s: %s", model.ErrTransient, what, reasonOf(err))
	case code == http.StatusServiceUnavailable, code == http.StatusTooManyRequests, code == http.StatusBadGateway:
		return fmt.Errorf("%w: load: %s: status %d %s", model.ErrTransient, what, code, text)
	case code != http.StatusOK:
		return fmt.Errorf("%w: load: %s: status %d %s", model.ErrInvalid, what, code, text)
	}
	return nil
}

// Window returns a range in PromQL that reaches from one time to another, both included. Since Prometheus 3
// ranges are open on the left, so it begins a millisecond early: that instant is never one of the load's own
// times.
func Window(from, to int64) string { return fmt.Sprintf("[%dms]", to-from+1) }

// Lines asks over Loki's query_range for the oldest lines of a time [from, to) in Unix nanoseconds, and
// returns the body of the response. Structured metadata stands apart from labels.
func (r *Reader) Lines(ctx context.Context, tenant, query string, from, to int64, limit int) (body []byte, err error) {
	form := url.Values{
		"query": {query}, "start": {strconv.FormatInt(from, 10)}, "end": {strconv.FormatInt(to, 10)},
		"limit": {strconv.Itoa(limit)}, "direction": {"forward"},
	}
	err = r.patiently(ctx, func() error {
		req, err := http.NewRequest(http.MethodGet, strings.TrimRight(r.URL, "/")+"/loki/api/v1/query_range?"+form.Encode(), nil)
		if err != nil {
			return fmt.Errorf("%w: load: %s: %w", model.ErrInvalid, query, err)
		}
		req.Header.Set("X-Loki-Response-Encoding-Flags", "categorize-labels")
		code, data, err := r.do(ctx, tenant, req)
		body = data
		return classify(query, code, string(data[:min(len(data), 300)]), err)
	})
	return body, err
}

// reasonOf strips the method and address that an HTTP client puts before each error.
func reasonOf(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err.Error()
	}
	return err.Error()
}
