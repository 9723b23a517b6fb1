package buckets

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/shaledb/shale/internal/bucket"
	bucketcheck "github.com/shaledb/shale/internal/bucket/check"
	"github.com/shaledb/shale/internal/bucket/location"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
)

// checkTime is how long a start waits for a store that does not respond.
const checkTime = time.Minute

// Check tests the bucket at the start.
type Check struct {
	bucket   bucket.Bucket
	location location.Location
	failures *prometheus.CounterVec
	log      *slog.Logger
}

// NewCheck returns a check of a bucket.
func NewCheck(b bucket.Bucket, l location.Location, reg prometheus.Registerer, log *slog.Logger) *Check {
	return &Check{bucket: b, location: l, log: log, failures: promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
		Name: "shale_bucket_check_failures_total", Help: "Failed checks of the bucket at the start of the process, by the step that failed."}, []string{"step"})}
}

// Run refuses a store that does not keep the contract of buckets. It waits for one that does not respond.
func (c *Check) Run(ctx context.Context) error {
	began := time.Now()
	for wait := time.Second; ; wait = min(2*wait, 15*time.Second) {
		err := bucketcheck.Run(ctx, c.bucket, c.depth(ctx), nil)
		if err == nil {
			c.log.Info("the bucket has passed its check", "bucket", c.location.String(), "after", time.Since(began).Round(time.Millisecond))
			return nil
		}
		var failed *bucketcheck.Failure
		if errors.As(err, &failed) {
			c.failures.WithLabelValues(failed.Step).Inc()
		}
		if !errors.Is(err, model.ErrTransient) || errors.Is(err, bucket.ErrDenied) {
			return fmt.Errorf("bucket %s: %w; see docs/object-stores.md", c.location, err)
		}
		if c.location.Kind == location.Folder {
			// A full disk, for example: the engine starts, and refuses writes until there is room.
			c.log.Warn("the bucket could not be checked", "bucket", c.location.String(), "err", err)
			return nil
		}
		if time.Since(began)+wait > checkTime || ctx.Err() != nil {
			return fmt.Errorf("bucket %s: %w", c.location, err)
		}
		c.log.Warn("the bucket does not respond; trying once more", "bucket", c.location.String(), "in", wait, "err", err)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// depth returns how much to check. A store that is used for the first time gets the full check.
func (c *Check) depth(ctx context.Context) bucketcheck.Depth {
	if c.location.Kind == location.Folder {
		return bucketcheck.Quick
	}
	if _, err := catalog.Seed(ctx, c.bucket); errors.Is(err, bucket.ErrNotFound) {
		return bucketcheck.Thorough
	}
	return bucketcheck.Usual
}
