package prom

import (
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	common "github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/timestamp"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/shaledb/shale/internal/api"
)

// federate shows the latest sample of each selected series, for another Prometheus to scrape.
func (h *Handler) federate(r *api.Request) (*api.Response, error) {
	sets, err := h.parseSelectors(r, plainBad)
	if err != nil {
		return nil, err
	}
	format := expfmt.NegotiateAccept(r.Header, expfmt.NewFormat(expfmt.TypeProtoDelim), expfmt.NewFormat(expfmt.TypeProtoText),
		expfmt.NewFormat(expfmt.TypeProtoCompact), expfmt.NewFormat(expfmt.TypeTextPlain))
	latest, err := h.latest(r, sets)
	if err != nil {
		return nil, err
	}
	return &api.Response{ContentType: string(format), Write: func(b *api.Body) error {
		return newExposition(b, format, r.Quota).write(latest)
	}}, nil
}

// latestBytes is the memory of a sample without its labels and buckets, which the selection charges.
const latestBytes = 64

// latest returns the latest sample of each series, sorted by metric name. It leaves out series whose latest
// sample is a stale marker.
func (h *Handler) latest(r *api.Request, sets [][]*labels.Matcher) (promql.Vector, error) {
	ctx := r.Context()
	now := h.o.Now()
	hints := &storage.SelectHints{Start: timestamp.FromTime(now.Add(-h.o.LookbackDelta)), End: timestamp.FromTime(now)}
	q, err := h.store(r).Querier(hints.Start, hints.End)
	if err != nil {
		return nil, err
	}
	// Labels and histograms are copies, so the result does not refer to the querier.
	defer q.Close()
	var found []storage.SeriesSet
	for _, ms := range sets {
		found = append(found, q.Select(ctx, true, hints, ms...))
	}
	set := storage.NewMergeSeriesSet(found, 0, storage.ChainedSeriesMerge)
	buffered := storage.NewBuffer(int64(h.o.LookbackDelta / time.Millisecond))
	var it chunkenc.Iterator
	var all promql.Vector
	for set.Next() {
		s := set.At()
		it = s.Iterator(it)
		sample, ok, err := latestOf(buffered, it, hints.End)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if err := r.Quota.TakeBytes(latestBytes); err != nil {
			return nil, err
		}
		sample.Metric = s.Labels()
		all = append(all, sample)
	}
	if err := set.Err(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b promql.Sample) int {
		return strings.Compare(a.Metric.Get(common.MetricNameLabel), b.Metric.Get(common.MetricNameLabel))
	})
	return all, nil
}

// latestOf returns the last sample of a series up to a time in Unix milliseconds, and false if the series has
// none or it is a stale marker.
func latestOf(buffered *storage.BufferedSeriesIterator, it chunkenc.Iterator, until int64) (promql.Sample, bool, error) {
	buffered.Reset(it)
	var s promql.Sample
	switch kind := buffered.Seek(until); {
	case kind != chunkenc.ValNone && buffered.AtT() == until:
		switch kind {
		case chunkenc.ValFloat:
			s.T, s.F = buffered.At()
		default:
			s.T, s.H = buffered.AtFloatHistogram(nil)
		}
	default:
		before, ok := buffered.PeekBack(1)
		if !ok {
			return s, false, it.Err()
		}
		s.T = before.T()
		switch before.Type() {
		case chunkenc.ValFloat:
			s.F = before.F()
		case chunkenc.ValHistogram:
			s.H = before.H().ToFloat(nil)
		case chunkenc.ValFloatHistogram:
			s.H = before.FH().Copy() // the buffer is reused
		}
	}
	if err := it.Err(); err != nil {
		return s, false, err
	}
	return s, !isStale(s.F, s.H), nil
}

func isStale(f float64, h *histogram.FloatHistogram) bool {
	if h != nil {
		f = h.Sum
	}
	return value.IsStaleNaN(f)
}
