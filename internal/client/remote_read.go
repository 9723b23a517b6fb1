package client

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"

	"github.com/klauspost/compress/s2"
	"github.com/prometheus/prometheus/prompb"

	"github.com/shaledb/shale/internal/model"
)

// RemoteRead gives all samples of the series that have the given labels, at times in Unix milliseconds from
// one to another, both included. Unlike a query it gives histograms as they were sent, and stale markers.
func (r *Reader) RemoteRead(ctx context.Context, tenant string, ms []*prompb.LabelMatcher, from, to int64) ([]Series, error) {
	q := prompb.Query{Matchers: ms, StartTimestampMs: from, EndTimestampMs: to}
	req := prompb.ReadRequest{Queries: []*prompb.Query{&q}, AcceptedResponseTypes: []prompb.ReadRequest_ResponseType{prompb.ReadRequest_SAMPLES}}
	raw, err := req.Marshal()
	if err != nil {
		return nil, fmt.Errorf("%w: load: remote read: %w", model.ErrInvalid, err)
	}
	what := fmt.Sprintf("remote read of %v", ms)
	var got prompb.ReadResponse
	err = r.patiently(ctx, func() error {
		req, err := http.NewRequest(http.MethodPost, r.endpoint("read"), bytes.NewReader(s2.EncodeSnappy(nil, raw)))
		if err != nil {
			return fmt.Errorf("%w: load: %s: %w", model.ErrInvalid, what, err)
		}
		req.Header.Set("Content-Type", "application/x-protobuf")
		req.Header.Set("Content-Encoding", "snappy")
		req.Header.Set("X-Prometheus-Remote-Read-Version", "0.1.0")
		code, data, err := r.do(ctx, tenant, req)
		if err := classify(what, code, fmt.Sprintf("%.200q", data), err); err != nil {
			return err
		}
		answer, err := s2.Decode(nil, data)
		if err == nil {
			got.Reset()
			err = got.Unmarshal(answer)
		}
		if err != nil || len(got.Results) != 1 {
			return fmt.Errorf("%w: load: %s: the response makes no sense: %d results, %w", model.ErrInvalid, what, len(got.Results), err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return curvesOf(got.Results[0]), nil
}

func curvesOf(r *prompb.QueryResult) []Series {
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
