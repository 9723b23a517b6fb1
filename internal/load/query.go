package load

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
	"time"

	"github.com/shaledb/shale/internal/model"
)

// Reader asks a server over Prometheus' HTTP API. It may be used by several goroutines.
type Reader struct {
	URL    string // of the server, without /api/v1
	Tenant string // none if empty
	Client *http.Client
	// Patience is how long a server that is away, starting or overloaded is asked again.
	Patience time.Duration
}

// queryTimeout bounds one attempt.
const queryTimeout = 2 * time.Minute

// curve is a series of a range selector.
type curve struct {
	Metric map[string]string `json:"metric"`
	Values []sample          `json:"values"`
	// Value is the single sample of an instant vector.
	Value sample `json:"value"`
}

// sample is [seconds, "value"] in JSON.
type sample struct {
	ms   int64
	bits uint64
}

// UnmarshalJSON reads a sample. Times are written with at most three decimals, which a float holds exactly enough.
func (s *sample) UnmarshalJSON(data []byte) error {
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
	s.ms, s.bits = int64(math.Round(seconds*1000)), math.Float64bits(value)
	return nil
}

type queryAnswer struct {
	Status string `json:"status"`
	Error  string `json:"error"`
	Data   struct {
		ResultType string  `json:"resultType"`
		Result     []curve `json:"result"`
	} `json:"data"`
	Warnings []string `json:"warnings"`
}

// query evaluates an expression at a time in Unix milliseconds.
func (r *Reader) query(ctx context.Context, expr string, ms int64) ([]curve, error) {
	return r.patiently(ctx, "query", url.Values{"query": {expr}, "time": {seconds(ms)}})
}

// queryRange evaluates an expression at times in Unix milliseconds, step apart.
func (r *Reader) queryRange(ctx context.Context, expr string, from, to, step int64) ([]curve, error) {
	return r.patiently(ctx, "query_range", url.Values{"query": {expr}, "start": {seconds(from)}, "end": {seconds(to)}, "step": {seconds(step)}})
}

// seconds writes milliseconds as the API wants them. Times before 1970 are no times of a load.
func seconds(ms int64) string { return fmt.Sprintf("%d.%03d", ms/1000, ms%1000) }

// patiently asks again while the server is away, starting or overloaded.
func (r *Reader) patiently(ctx context.Context, endpoint string, form url.Values) ([]curve, error) {
	deadline := time.Now().Add(r.Patience)
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		curves, err := r.ask(ctx, endpoint, form)
		if err == nil || !errors.Is(err, model.ErrTransient) || time.Now().After(deadline) {
			return curves, err
		}
		if serr := sleep(ctx, wait); serr != nil {
			return nil, fmt.Errorf("%w: load: query: %w", model.ErrClosed, serr)
		}
	}
}

func (r *Reader) ask(ctx context.Context, endpoint string, form url.Values) ([]curve, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	expr := form.Get("query")
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(r.URL, "/")+"/api/v1/"+endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, fmt.Errorf("%w: load: query: %w", model.ErrInvalid, err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if r.Tenant != "" {
		req.Header.Set("X-Scope-OrgID", r.Tenant)
	}
	resp, err := r.Client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%w: load: query %s: %s", model.ErrTransient, expr, plain(err))
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("%w: load: query %s: %w", model.ErrTransient, expr, err)
	}
	var got queryAnswer
	jsonErr := json.Unmarshal(data, &got)
	switch {
	case resp.StatusCode == http.StatusServiceUnavailable, resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode == http.StatusBadGateway:
		return nil, fmt.Errorf("%w: load: query %s: status %d %s", model.ErrTransient, expr, resp.StatusCode, got.Error)
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%w: load: query %s: status %d %s", model.ErrInvalid, expr, resp.StatusCode, got.Error)
	case jsonErr != nil || got.Status != "success":
		return nil, fmt.Errorf("%w: load: query %s: answer makes no sense: %.200q", model.ErrInvalid, expr, data)
	}
	return got.Data.Result, nil
}

// window returns a range in PromQL that reaches from one time to another, both included. Since Prometheus 3 ranges
// are open on the left, so it begins a millisecond early: that instant is never one of the load's own times.
func window(from, to int64) string { return fmt.Sprintf("[%dms]", to-from+1) }
