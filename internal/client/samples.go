package client

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/prometheus/prometheus/prompb"
)

// Envelope is the outer object of every response of the Prometheus API.
type Envelope struct {
	Status    string          `json:"status"`
	Data      json.RawMessage `json:"data"`
	ErrorType string          `json:"errorType"`
	Error     string          `json:"error"`
	Warnings  []string        `json:"warnings"`
	Infos     []string        `json:"infos"`
}

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

// Query evaluates a PromQL expression at a time in Unix milliseconds.
func (s *Server) Query(ctx context.Context, expr string, ms int64) ([]Series, error) {
	return s.series(ctx, "query", url.Values{"query": {expr}, "time": {Seconds(ms)}})
}

// QueryRange evaluates a PromQL expression at times in Unix milliseconds, step apart.
func (s *Server) QueryRange(ctx context.Context, expr string, from, to, step int64) ([]Series, error) {
	return s.series(ctx, "query_range", url.Values{"query": {expr}, "start": {Seconds(from)}, "end": {Seconds(to)}, "step": {Seconds(step)}})
}

func (s *Server) series(ctx context.Context, endpoint string, form url.Values) ([]Series, error) {
	var got struct {
		Result []Series `json:"result"`
	}
	err := s.API(ctx, http.MethodPost, endpoint, form, &got)
	return got.Result, err
}

// LabelValues lists the values of a label of series.
func (s *Server) LabelValues(ctx context.Context, label string) (values []string, err error) {
	err = s.API(ctx, http.MethodGet, "label/"+label+"/values", nil, &values)
	return values, err
}

// API requests an endpoint of the Prometheus API, and decodes the data of the response.
func (s *Server) API(ctx context.Context, method, endpoint string, form url.Values, data any) error {
	ask := s.PostForm
	if method == http.MethodGet {
		ask = s.Get
	}
	what := strings.TrimSpace(endpoint + " " + form.Get("query") + form.Get("metric"))
	body, err := ask(ctx, "api/v1/"+endpoint, form)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	var got Envelope
	err = json.Unmarshal(body, &got)
	if err == nil && got.Status == "success" {
		err = json.Unmarshal(got.Data, data)
	}
	if err != nil || got.Status != "success" {
		return invalid(fmt.Errorf("%s: the response is not of the Prometheus API: %.200q", what, body))
	}
	return nil
}

// Seconds writes milliseconds as the API wants them. They must not be negative.
func Seconds(ms int64) string { return fmt.Sprintf("%d.%03d", ms/1000, ms%1000) }

// Window returns a range in PromQL that reaches from one time to another, both included. Since Prometheus 3
// ranges are open on the left, so it begins a millisecond early: that instant is never one of the load's own
// times.
func Window(from, to int64) string { return fmt.Sprintf("[%dms]", to-from+1) }
