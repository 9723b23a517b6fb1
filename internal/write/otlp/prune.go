package otlp

import (
	"fmt"
	"math"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/shaledb/shale/internal/write"
)

// pruner takes out of metrics what cannot be stored, before they are translated.
type pruner struct {
	limits write.Limits
	now    int64
	// lo and hi bound the times of points, and first and last are those of the points that stay.
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

// span is how far the points that stay lie apart.
func (p *pruner) span() time.Duration {
	if p.last < p.first {
		return 0
	}
	return time.Duration(p.last - p.first)
}

// prune goes through all metrics.
func (p *pruner) prune(md pmetric.Metrics) {
	for i := range md.ResourceMetrics().Len() {
		scopes := md.ResourceMetrics().At(i).ScopeMetrics()
		for j := range scopes.Len() {
			scopes.At(j).Metrics().RemoveIf(p.metric)
		}
	}
}

// metric takes points out of a metric, and reports whether it is to be taken out as a whole: if its values are differences
// to the request before, which every query would sum wrongly, and if no point is left.
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
		d.RemoveIf(func(x pmetric.ExponentialHistogramDataPoint) bool { return p.point(m, x.Timestamp(), histograms) })
		left = d.Len()
	case pmetric.MetricTypeSummary:
		d := m.Summary().DataPoints()
		before = d.Len()
		d.RemoveIf(func(x pmetric.SummaryDataPoint) bool { return p.point(m, x.Timestamp(), floats) })
		left = d.Len()
	}
	if temporality == pmetric.AggregationTemporalityDelta && left > 0 {
		n.Samples, n.Histograms = n.Samples*left, n.Histograms*left
		p.left.Add(write.ReasonTemporality, n, func() string {
			return fmt.Sprintf("metric %.100q has delta temporality, and only cumulative metrics can be stored; let the SDK send those, or put the processor deltatocumulative of the OpenTelemetry Collector in front", m.Name())
		})
		return true
	}
	return before > 0 && left == 0
}

// point reports whether a point is to be taken out.
func (p *pruner) point(m pmetric.Metric, t pcommon.Timestamp, n write.Counts) bool {
	switch {
	case t < p.lo:
		p.left.Add(write.ReasonTooOld, n, func() string {
			return fmt.Sprintf("metric %.100q at %s is older than max-age (%s)", m.Name(), t.AsTime().Format(time.RFC3339Nano), p.limits.MaxAge)
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
