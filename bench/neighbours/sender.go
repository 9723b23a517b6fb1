package neighbours

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
)

// client sends the requests of tenants.
type client struct {
	url  string
	http *http.Client
}

func newClient(url string, connections int) *client {
	return &client{url, &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: connections, DisableCompression: true}}}
}

// do sends a request and returns its status. It reads the response, up to a MiB.
func (c *client) do(ctx context.Context, tenant, method, path string, body io.Reader, header ...string) (status int, text []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, method, c.url+path, body)
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("X-Scope-OrgID", tenant)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return 0, nil, err
	}
	text, err = io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, text, errors.Join(err, resp.Body.Close())
}

// write sends a body of remote write.
func (c *client) write(ctx context.Context, tenant string, body []byte) (int, []byte, error) {
	return c.do(ctx, tenant, http.MethodPost, "/api/v1/write", bytes.NewReader(body), "Content-Type", "application/x-protobuf", "Content-Encoding", "snappy", "X-Prometheus-Remote-Write-Version", "0.1.0")
}

// query sends a query over a range, whose whole result is computed.
func (c *client) query(ctx context.Context, tenant, query string, from time.Duration, step string) (int, []byte, error) {
	now := time.Now()
	q := url.Values{"query": {query}, "start": {fmt.Sprint(now.Add(-from).Unix())}, "end": {fmt.Sprint(now.Unix())}, "step": {step}}
	return c.do(ctx, tenant, http.MethodGet, "/api/v1/query_range?"+q.Encode(), nil, "Cache-Control", "no-cache")
}

// body makes a body of remote write with one sample for each series.
func body(name string, series int, at time.Time, labels func(i int) []prompb.Label) []byte {
	req := prompb.WriteRequest{Timeseries: make([]prompb.TimeSeries, series)}
	for i := range req.Timeseries {
		req.Timeseries[i] = prompb.TimeSeries{
			Labels:  append([]prompb.Label{{Name: "__name__", Value: name}}, labels(i)...),
			Samples: []prompb.Sample{{Timestamp: at.UnixMilli(), Value: float64(i)}},
		}
	}
	raw, err := req.Marshal()
	if err != nil {
		panic("BUG: a request that cannot be encoded: " + err.Error())
	}
	return snappy.Encode(nil, raw)
}

// numbered labels series by their number.
func numbered(i int) []prompb.Label { return []prompb.Label{{Name: "i", Value: fmt.Sprint(i)}} }
