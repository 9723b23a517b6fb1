package buckets

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/bucket/coalesce"
	"github.com/shaledb/shale/internal/bucket/hedge"
	"github.com/shaledb/shale/internal/bucket/pace"
	"github.com/shaledb/shale/internal/bucket/retry"
	"github.com/shaledb/shale/internal/bucket/share"
	"github.com/shaledb/shale/internal/config"
)

// Scheduled wraps a bucket whose URL has the given scheme, and none for a folder. From the outside: reads are
// coalesced, requests that fail for a moment are repeated, each waits for its turn, and a slow read is sent
// twice. The limits see every request that reaches b, and so does a meter that b is wrapped in.
func Scheduled(b bucket.Bucket, scheme string, r config.Requests, reg prometheus.Registerer) bucket.Bucket {
	limit := pace.New(pace.Options{
		Rules: pace.RulesOf(scheme), Concurrent: r.Concurrent, PerSecond: float64(r.PerSecond), Registerer: reg,
	})
	b = pace.Wrap(b, limit)
	if r.Hedge.On() {
		b = hedge.New(b, limit, reg)
	}
	queue := share.New(b, limit, reg)
	return coalesce.New(retry.New(queue, reg), coalesce.Options{
		Gap: r.Gap, Busy: func() bool { return queue.Waiting() > 0 }, Registerer: reg,
	})
}
