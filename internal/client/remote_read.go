package client

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"

	"github.com/klauspost/compress/s2"
	"github.com/prometheus/prometheus/prompb"
)

// RemoteRead gives all samples of the series that have the given labels, at times in Unix milliseconds from
// one to another, both included. Unlike a query it gives histograms as they were sent, and stale markers.
func (s *Server) RemoteRead(ctx context.Context, ms []*prompb.LabelMatcher, from, to int64) ([]Series, error) {
	got, err := s.RemoteReadAll(ctx, []*prompb.Query{{Matchers: ms, StartTimestampMs: from, EndTimestampMs: to}})
	if err != nil {
		return nil, fmt.Errorf("remote read of %v: %w", ms, err)
	}
	return got[0], nil
}

// RemoteReadAll gives the result of each of several queries, as RemoteRead does, with one request.
func (s *Server) RemoteReadAll(ctx context.Context, queries []*prompb.Query) ([][]Series, error) {
	req := prompb.ReadRequest{Queries: queries, AcceptedResponseTypes: []prompb.ReadRequest_ResponseType{prompb.ReadRequest_SAMPLES}}
	raw, err := req.Marshal()
	if err != nil {
		return nil, invalid(err)
	}
	body, err := s.Post(ctx, "api/v1/read", http.Header{
		"Content-Type": {"application/x-protobuf"}, "Content-Encoding": {"snappy"}, "X-Prometheus-Remote-Read-Version": {"0.1.0"},
	}, s2.EncodeSnappy(nil, raw))
	if err != nil {
		return nil, err
	}
	var got prompb.ReadResponse
	raw, err = s2.Decode(nil, body)
	if err == nil {
		err = got.Unmarshal(raw)
	}
	if err != nil {
		return nil, invalid(fmt.Errorf("the response is not of remote read: %w", err))
	}
	if len(got.Results) != len(queries) {
		return nil, invalid(fmt.Errorf("expected %d results, got %d", len(queries), len(got.Results)))
	}
	all := make([][]Series, len(queries))
	for i, r := range got.Results {
		all[i] = seriesOf(r)
	}
	return all, nil
}

func seriesOf(r *prompb.QueryResult) []Series {
	var out []Series
	for _, ts := range r.Timeseries {
		c := Series{Metric: map[string]string{}}
		for _, l := range ts.Labels {
			c.Metric[l.Name] = l.Value
		}
		for _, s := range ts.Samples {
			c.Values = append(c.Values, Sample{Ms: s.Timestamp, Bits: math.Float64bits(s.Value)})
		}
		for i := range ts.Histograms {
			h := &ts.Histograms[i]
			c.Values = append(c.Values, Sample{Ms: h.Timestamp, Bits: math.Float64bits(h.Sum), Histogram: h})
		}
		// A series may have both: a Prometheus marks the end of one of histograms by a float.
		slices.SortStableFunc(c.Values, func(a, b Sample) int { return cmp.Compare(a.Ms, b.Ms) })
		out = append(out, c)
	}
	return out
}
