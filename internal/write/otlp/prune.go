package otlp

import (
	"fmt"
	"math"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/shaledb/shale/internal/write"
)

// pruner removes points that cannot be stored from metrics before they are translated.
type pruner struct {
	limits write.Limits
	now    int64
	// lo and hi bound the times of points. first and last are the earliest and latest time of the
	// remaining points.
	lo, hi, first, last pcommon.Timestamp
	left                *write.Rejections
}

func newPruner(l write.Limits, now int64, left *write.Rejections) *pruner {
	p := &pruner{limits: l, now: now, hi: math.MaxInt64, first: math.MaxUint64, left: left}
	if l.MaxAge > 0 && now > int64(l.MaxAge) {
		p.lo = pcommon.Timestamp(now - int64(l.MaxAge))
	}
	if now < math.MaxInt64-int64(l.MaxFuture) {
		p.hi = pcommon.Timestamp(now + int64(l.MaxFuture))
	}
	return p
}

// span returns the time between the first and the last remaining point.
func (p *pruner) span() time.Duration {
	if p.last < p.first {
		return 0
	}
	return time.Duration(p.last - p.first)
}

// prune prunes all metrics.
func (p *pruner) prune(md pmetric.Metrics) {
	for i := range md.ResourceMetrics().Len() {
		scopes := md.ResourceMetrics().At(i).ScopeMetrics()
		for j := range scopes.Len() {
			scopes.At(j).Metrics().RemoveIf(p.metric)
		}
	}
}

// metric prunes the points of a metric and reports whether the whole metric must be removed. That is so
// if no point is left, or if the temporality is not cumulative: queries would compute wrong rates from
// the differences.
func (p *pruner) metric(m pmetric.Metric) bool {
	floats, histograms := write.Counts{Samples: 1}, write.Counts{Histograms: 1}
	before, left := 0, 0
	temporality := pmetric.AggregationTemporalityCumulative
	n := floats
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		d := m.Gauge().DataPoints()
		before = d.Len()
		d.RemoveIf(func(x pmetric.NumberDataPoint) bool { return p.point(m, x.Timestamp(), floats) })
		left = d.Len()
	case pmetric.MetricTypeSum:
		d := m.Sum().DataPoints()
		before, temporality = d.Len(), m.Sum().AggregationTemporality()
		d.RemoveIf(func(x pmetric.NumberDataPoint) bool { return p.point(m, x.Timestamp(), floats) })
		left = d.Len()
	case pmetric.MetricTypeHistogram:
		d := m.Histogram().DataPoints()
		before, temporality, n = d.Len(), m.Histogram().AggregationTemporality(), histograms
		d.RemoveIf(func(x pmetric.HistogramDataPoint) bool { return p.point(m, x.Timestamp(), histograms) })
		left = d.Len()
	case pmetric.MetricTypeExponentialHistogram:
		d := m.ExponentialHistogram().DataPoints()
		before, temporality, n = d.Len(), m.ExponentialHistogram().AggregationTemporality(), histograms
		d.RemoveIf(func(x pmetric.ExponentialHistogramDataPoint) bool {
			return p.scale(m, x.Scale()) || p.point(m, x.Timestamp(), histograms)
		})
		left = d.Len()
	case pmetric.MetricTypeSummary:
		d := m.Summary().DataPoints()
		before = d.Len()
		d.RemoveIf(func(x pmetric.SummaryDataPoint) bool { return p.point(m, x.Timestamp(), floats) })
		left = d.Len()
	}
	if temporality != pmetric.AggregationTemporalityCumulative && left > 0 {
		n.Samples, n.Histograms = n.Samples*left, n.Histograms*left
		p.wrongTemporality(m, temporality, n)
		return true
	}
	return before > 0 && left == 0
}

// wrongTemporality counts the points of a metric whose temporality is not cumulative.
func (p *pruner) wrongTemporality(m pmetric.Metric, t pmetric.AggregationTemporality, n write.Counts) {
	if t == pmetric.AggregationTemporalityDelta {
		p.left.Add(write.ReasonTemporality, n, func() string {
			return fmt.Sprintf("metric %.100q has delta temporality, but only cumulative temporality is supported; configure the SDK for cumulative temporality, or use the deltatocumulative processor of the OpenTelemetry Collector", m.Name())
		})
		return
	}
	p.left.Add(write.ReasonMetric, n, func() string {
		return fmt.Sprintf("metric %.100q has aggregation temporality %d (%s), expected 2 (Cumulative)", m.Name(), t, t)
	})
}

// scale reports whether a point must be removed because its buckets are wider than those of any native
// histogram. The translator would drop the rest of the metric, too.
func (p *pruner) scale(m pmetric.Metric, scale int32) bool {
	if scale >= histogram.ExponentialSchemaMin {
		return false
	}
	p.left.Add(write.ReasonHistogram, write.Counts{Histograms: 1}, func() string {
		return fmt.Sprintf("metric %.100q has an exponential histogram of scale %d, the least is %d", m.Name(), scale, histogram.ExponentialSchemaMin)
	})
	return true
}

// point reports whether a point must be removed.
func (p *pruner) point(m pmetric.Metric, t pcommon.Timestamp, n write.Counts) bool {
	switch {
	case t < p.lo:
		p.left.Add(write.ReasonTooOld, n, func() string {
			return fmt.Sprintf("metric %.100q at %s is older than %s", m.Name(), t.AsTime().Format(time.RFC3339Nano), p.limits.OldestAge())
		})
		return true
	case t > p.hi:
		p.left.Add(write.ReasonTooNew, n, func() string {
			return fmt.Sprintf("metric %.100q at %s is further in the future than max-future (%s)", m.Name(), t.AsTime().Format(time.RFC3339Nano), p.limits.MaxFuture)
		})
		return true
	}
	p.first, p.last = min(p.first, t), max(p.last, t)
	return false
}
