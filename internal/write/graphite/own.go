package graphite

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"math/rand/v2"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
)

// Own stores points that the process makes itself, such as aggregates. No rule applies to them. It is for
// one caller at a time.
type Own struct {
	sink   Sink
	labels *labelRoom
	log    *slog.Logger
	p      *parser
	c      chunk
}

// NewOwn returns an Own.
func NewOwn(sink Sink, log *slog.Logger) *Own {
	o := &Own{sink: sink, labels: newLabelRoom(sink), log: log, p: &parser{now: sink.Now, maxLine: maxLineBytes, ruled: map[string]int{}}}
	o.p.keys.Seed, o.p.keys.Signal = sink.Seed(), model.Metrics
	o.p.reportBad = func(path []byte, why string) {
		log.Debug("unusual path of a point about Shale itself", "path", string(path), "why", why)
	}
	return o
}

// Store returns when the points are durable, or can never be stored, which is counted. While the write path
// refuses them temporarily it tries again, until ctx ends. Times are in Unix seconds.
func (o *Own) Store(ctx context.Context, tenant string, paths []string, times []int64, values []float64) error {
	for at := 0; at < len(paths); {
		o.c.reset()
		for ; at < len(paths) && !o.c.full(); at++ {
			o.add(tenant, paths[at], times[at], values[at])
		}
		if err := o.push(ctx, tenant); err != nil {
			return err
		}
	}
	return nil
}

func (o *Own) add(tenant, path string, t int64, v float64) {
	switch {
	case math.IsNaN(v):
		o.sink.Discard(tenant, write.ReasonNaN, 1)
	case t > maxSeconds || t < -maxSeconds:
		o.sink.Discard(tenant, write.ReasonTimeRange, 1)
	case o.p.pathPoint([]byte(path), t*second, math.Float64bits(v), &o.c) != "":
		o.sink.Discard(tenant, write.ReasonBadLine, 1)
	}
}

func (o *Own) push(ctx context.Context, tenant string) error {
	if o.c.rows() == 0 {
		return nil
	}
	grant, err := o.sink.AdmitWait(ctx, tenant, o.c.bytes())
	if err != nil {
		return err
	}
	defer grant.Release()
	b := o.sink.Batch(tenant, model.Metrics)
	defer o.sink.Recycle(b)
	o.c.fill(b)
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		o.c.begin(ctx, o.labels, tenant)
		_, err := o.sink.Push(ctx, b)
		o.c.end(b, err)
		var refused *write.Refused
		if errors.As(err, &refused) && refused.NewSeries {
			// Known series must not wait until the tenant may have more. The write path has counted these.
			return nil
		}
		if err == nil || !errors.Is(err, model.ErrTransient) || ctx.Err() != nil {
			return err
		}
		o.log.Warn("cannot store the series about Shale itself for now; retrying", "points", b.Samples.Len(), "err", err)
		select {
		case <-time.After(wait/2 + rand.N(wait)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
