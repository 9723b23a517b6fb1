package meter

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
)

// Bucket counts the requests to another bucket.
type Bucket struct {
	next     bucket.Bucket
	requests *prometheus.CounterVec
	bytes    *prometheus.CounterVec
	seconds  *prometheus.HistogramVec

	tenants        *tenants
	callerRequests *prometheus.CounterVec
	callerBytes    *prometheus.CounterVec
}

var _ bucket.Bucket = (*Bucket)(nil)

// New wraps a bucket. With a nil registerer the metrics are not exported.
func New(next bucket.Bucket, reg prometheus.Registerer) *Bucket {
	f := promauto.With(reg)
	b := &Bucket{
		next: next,
		requests: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_bucket_requests_total", Help: "Requests to the bucket, by operation and result: ok, not_found, invalid, denied, throttled, transient, cancelled, other."},
			[]string{"op", "result"}),
		bytes: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_bucket_bytes_total", Help: "Bytes of objects read from the bucket and written to it, by operation."},
			[]string{"op"}),
		seconds: f.NewHistogramVec(prometheus.HistogramOpts{
			Name: "shale_bucket_request_seconds", Help: "Seconds that requests to the bucket took, by operation.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16)}, []string{"op"}),
		callerRequests: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_bucket_caller_requests_total",
			Help: "Requests to the bucket by class, tenant and result; all tenants but the 50 with the most requests share the name other."},
			[]string{"class", "tenant", "result"}),
		callerBytes: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_bucket_caller_bytes_total",
			Help: "Bytes of objects read from the bucket and written to it by class and tenant; all tenants but the 50 with the most requests share the name other."},
			[]string{"class", "tenant"}),
	}
	b.tenants = newTenants(func(tenant string) {
		b.callerRequests.DeletePartialMatch(prometheus.Labels{"tenant": tenant})
		b.callerBytes.DeletePartialMatch(prometheus.Labels{"tenant": tenant})
	})
	return b
}

func (b *Bucket) done(ctx context.Context, op string, begin time.Time, bytes int64, err error) {
	caller := model.CallerOf(ctx)
	class, tenant := caller.Class.String(), ""
	if caller.Tenant != "" {
		tenant = b.tenants.label(caller.Tenant)
	}
	b.callerRequests.WithLabelValues(class, tenant, result(err)).Inc()
	if bytes > 0 {
		b.callerBytes.WithLabelValues(class, tenant).Add(float64(bytes))
	}
	b.seconds.WithLabelValues(op).Observe(time.Since(begin).Seconds())
	b.requests.WithLabelValues(op, result(err)).Inc()
	if bytes > 0 {
		b.bytes.WithLabelValues(op).Add(float64(bytes))
	}
}

func result(err error) string {
	var throttled *bucket.ThrottledError
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &throttled):
		return "throttled"
	case errors.Is(err, bucket.ErrDenied):
		return "denied"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.Is(err, bucket.ErrNotFound):
		return "not_found"
	case errors.Is(err, model.ErrInvalid):
		return "invalid"
	case errors.Is(err, model.ErrTransient):
		return "transient"
	}
	return "other"
}

// countingReader counts the bytes read from it, so that a failed upload counts too.
type countingReader struct {
	r io.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// Put creates or replaces an object.
func (b *Bucket) Put(ctx context.Context, name string, r io.Reader, size int64) error {
	begin, c := time.Now(), &countingReader{r: r}
	err := b.next.Put(ctx, name, c, size)
	b.done(ctx, "put", begin, c.n, err)
	return err
}

// PutIfAbsent creates an object unless the name is taken.
func (b *Bucket) PutIfAbsent(ctx context.Context, name string, data []byte) (bool, error) {
	begin := time.Now()
	created, err := b.next.PutIfAbsent(ctx, name, data)
	b.done(ctx, "put_if_absent", begin, int64(len(data)), err)
	return created, err
}

// Get returns a whole object.
func (b *Bucket) Get(ctx context.Context, name string) ([]byte, error) {
	begin := time.Now()
	data, err := b.next.Get(ctx, name)
	b.done(ctx, "get", begin, int64(len(data)), err)
	return data, err
}

// GetRange returns n bytes of an object from off.
func (b *Bucket) GetRange(ctx context.Context, name string, off, n int64) ([]byte, error) {
	begin := time.Now()
	data, err := b.next.GetRange(ctx, name, off, n)
	b.done(ctx, "get_range", begin, int64(len(data)), err)
	return data, err
}

// List calls fn for every object whose name begins with prefix. The metrics include the time of fn.
func (b *Bucket) List(ctx context.Context, prefix string, fn func(name string, size int64) error) error {
	begin := time.Now()
	err := b.next.List(ctx, prefix, fn)
	b.done(ctx, "list", begin, 0, err)
	return err
}

// Delete removes an object.
func (b *Bucket) Delete(ctx context.Context, name string) error {
	begin := time.Now()
	err := b.next.Delete(ctx, name)
	b.done(ctx, "delete", begin, 0, err)
	return err
}
