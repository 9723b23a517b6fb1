package tsdbtest

import (
	"context"
	"fmt"
	"math"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"pgregory.net/rapid"
)

// series is a series as a storage returns it.
type series struct {
	labels  labels.Labels
	samples []sample
}

func selectAll(t *rapid.T, s storage.Queryable, from, until int64, ms []*labels.Matcher) []series {
	q, err := s.Querier(from, until)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	set := q.Select(context.Background(), true, nil, ms...)
	var out []series
	// Reused for each sample, as the engine does.
	var it chunkenc.Iterator
	var whole histogram.Histogram
	var float histogram.FloatHistogram
	for set.Next() {
		one := series{labels: set.At().Labels()}
		it = set.At().Iterator(it)
		for typ := it.Next(); typ != chunkenc.ValNone; typ = it.Next() {
			p := sample{t: it.AtT(), st: it.AtST()}
			switch typ {
			case chunkenc.ValFloat:
				_, p.v = it.At()
			case chunkenc.ValHistogram:
				_, h := it.AtHistogram(&whole)
				p.h = h.Copy()
			case chunkenc.ValFloatHistogram:
				_, fh := it.AtFloatHistogram(&float)
				p.fh = fh.Copy()
			}
			one.samples = append(one.samples, p)
		}
		if err := it.Err(); err != nil {
			t.Fatalf("%s: %v", one.labels, err)
		}
		// Prometheus returns a series with a chunk in the range, even without a sample there.
		if len(one.samples) > 0 {
			out = append(out, one)
		}
	}
	if err := set.Err(); err != nil {
		t.Fatalf("select: %v", err)
	}
	return out
}

// compareSeries returns the first difference, or "".
func (w *world) compareSeries(ours, theirs []series) string {
	for i := range max(len(ours), len(theirs)) {
		switch {
		case i >= len(ours):
			return fmt.Sprintf("%s is missing", theirs[i].labels)
		case i >= len(theirs):
			return fmt.Sprintf("%s is too much", ours[i].labels)
		case !labels.Equal(ours[i].labels, theirs[i].labels):
			return fmt.Sprintf("%s, want %s", ours[i].labels, theirs[i].labels)
		}
		if d := w.compareSamples(ours[i], theirs[i].samples); d != "" {
			return fmt.Sprintf("%s: %s", ours[i].labels, d)
		}
	}
	return ""
}

func (w *world) compareSamples(one series, theirs []sample) string {
	ours := one.samples
	for i := range max(len(ours), len(theirs)) {
		switch {
		case i >= len(ours):
			return fmt.Sprintf("%s is missing", &theirs[i])
		case i >= len(theirs):
			return fmt.Sprintf("%s is too much", &ours[i])
		}
		a, b := &ours[i], &theirs[i]
		if a.t != b.t || a.st != b.st || !sameStale(a, b) && !sameValue(a, b) {
			return fmt.Sprintf("%s, want %s", a, b)
		}
		if a.isHistogram() && !a.stale() && !sameHint(a.hint(), b.hint(), b, w.before(one.labels, a.t)) {
			return fmt.Sprintf("hint %d of %s, where %d is said", a.hint(), a, b.hint())
		}
	}
	return ""
}

// before returns the last sample of a series before a time, in the result or not, or nil.
func (w *world) before(l labels.Labels, t int64) *sample {
	var found *sample
	for i := range w.resolved {
		for j := range w.resolved[i] {
			s := &w.resolved[i][j]
			if s.t < t && (found == nil || s.t > found.t) && labels.Equal(w.labels[s.series], l) {
				found = s
			}
		}
	}
	return found
}

func (s *sample) hint() histogram.CounterResetHint {
	if s.h != nil {
		return s.h.CounterResetHint
	}
	return s.fh.CounterResetHint
}

// sameValue compares bit for bit. Histograms are equal if their populated buckets are: Prometheus uses one
// layout for the histograms of a chunk.
func sameValue(a, b *sample) bool {
	switch {
	case a.h != nil && b.h != nil:
		x, y := a.h.Copy().Compact(0), b.h.Copy().Compact(0)
		x.CounterResetHint, y.CounterResetHint = 0, 0
		return x.Equals(y)
	case a.fh != nil && b.fh != nil:
		x, y := a.fh.Copy().Compact(0), b.fh.Copy().Compact(0)
		x.CounterResetHint, y.CounterResetHint = 0, 0
		return x.Equals(y)
	}
	return !a.isHistogram() && !b.isHistogram() && math.Float64bits(a.v) == math.Float64bits(b.v)
}

func (s *sample) String() string {
	switch {
	case s.h != nil:
		return fmt.Sprintf("h %s sum %x at %d from %d", s.h, math.Float64bits(s.h.Sum), s.t, s.st)
	case s.fh != nil:
		return fmt.Sprintf("fh %s sum %x at %d from %d", s.fh, math.Float64bits(s.fh.Sum), s.t, s.st)
	}
	return fmt.Sprintf("%g (%x) at %d from %d", s.v, math.Float64bits(s.v), s.t, s.st)
}
