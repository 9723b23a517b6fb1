package load

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

// remoteRead gives all samples of the series that have the given labels, at times in Unix milliseconds from one to
// another, both included. Unlike a query it gives histograms as they were sent, and stale markers.
func (r *Reader) remoteRead(ctx context.Context, tenant string, ls []label, from, to int64) ([]curve, error) {
	q := prompb.Query{StartTimestampMs: from, EndTimestampMs: to}
	for _, l := range ls {
		q.Matchers = append(q.Matchers, &prompb.LabelMatcher{Type: prompb.LabelMatcher_EQ, Name: l.name, Value: l.before})
	}
	req := prompb.ReadRequest{Queries: []*prompb.Query{&q}, AcceptedResponseTypes: []prompb.ReadRequest_ResponseType{prompb.ReadRequest_SAMPLES}}
	raw, err := req.Marshal()
	if err != nil {
		return nil, fmt.Errorf("%w: load: remote read: %w", model.ErrInvalid, err)
	}
	what := "remote read of " + selectorOf(ls)
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
			return fmt.Errorf("%w: load: %s: answer makes no sense: %d results, %w", model.ErrInvalid, what, len(got.Results), err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return curvesOf(got.Results[0]), nil
}

func curvesOf(r *prompb.QueryResult) []curve {
	var out []curve
	for _, ts := range r.Timeseries {
		c := curve{Metric: map[string]string{}}
		for _, l := range ts.Labels {
			c.Metric[l.Name] = l.Value
		}
		for _, s := range ts.Samples {
			c.Values = append(c.Values, sample{ms: s.Timestamp, bits: math.Float64bits(s.Value)})
		}
		for i := range ts.Histograms {
			h := &ts.Histograms[i]
			c.Values = append(c.Values, sample{ms: h.Timestamp, bits: math.Float64bits(h.Sum), histogram: h})
		}
		// A series may have both: a Prometheus marks the end of one of histograms by a float.
		slices.SortStableFunc(c.Values, func(a, b sample) int { return cmp.Compare(a.ms, b.ms) })
		out = append(out, c)
	}
	return out
}
