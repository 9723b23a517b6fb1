package tsdbimport

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"
	"golang.org/x/sync/errgroup"

	"github.com/shaledb/shale/internal/client"
)

// Verification says how what was read back compares with the blocks.
type Verification struct {
	// Series counts a series once in each block and day.
	Series int64 `json:"series"`
	Same   int64 `json:"samples_same"`
	// Replaced are stale markers for a time at which the server has a value, which wins.
	Replaced  int64 `json:"stale_markers_replaced"`
	Missing   int64 `json:"samples_missing"`
	Different int64 `json:"samples_different"`
	// More counts samples of the server that the block does not have, such as those of overlapping blocks.
	More     int64    `json:"samples_more"`
	Examples []string `json:"examples,omitempty"`

	mu sync.Mutex
}

// Failed reports whether anything is missing or different.
func (v *Verification) Failed() bool { return v.Missing+v.Different > 0 }

const (
	// A remote read asks for so many series, or so many points, at one time.
	readSeries = 100
	readPoints = 50_000
	// maxExamples bounds the differences that a report describes.
	maxExamples = 10
)

// verifier reads a block back.
type verifier struct {
	server      *client.Server
	result      *Verification
	done        *atomic.Int64
	concurrency int
	note        string // added to differences; may be empty
}

// stored is a series of a block with its points of a day.
type stored struct {
	labels labels.Labels
	points []point
}

// run compares a block with what the server has. It reports whether all is the same.
func (v *verifier) run(ctx context.Context, r *reader, from, to int64) (same bool, err error) {
	before := v.result.Missing + v.result.Different
	err = days(from, to, Progress{}, func(lo, hi int64, _ uint64) error {
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(max(1, v.concurrency))
		var batch []stored
		var ref, count = uint64(0), 0
		flush := func() {
			if full := batch; len(full) > 0 {
				g.Go(func() error { return v.compare(ctx, full, lo, hi) })
			}
			batch, count = nil, 0
		}
		err := r.each(ctx, 0, lo, hi, func(p piece) error {
			if uint64(p.ref) != ref {
				if len(batch) >= readSeries || count >= readPoints {
					flush()
				}
				ref = uint64(p.ref)
				batch = append(batch, stored{labels: p.labels})
			}
			last := &batch[len(batch)-1]
			last.points = append(last.points, p.points...)
			count += len(p.points)
			return nil
		})
		flush()
		if waited := g.Wait(); waited != nil {
			return waited
		}
		return err
	})
	return v.result.Missing+v.result.Different == before, err
}

// compare reads series back and compares them.
func (v *verifier) compare(ctx context.Context, batch []stored, lo, hi int64) error {
	queries := make([]*prompb.Query, len(batch))
	for i := range batch {
		q := &prompb.Query{StartTimestampMs: lo, EndTimestampMs: hi - 1}
		batch[i].labels.Range(func(l labels.Label) {
			q.Matchers = append(q.Matchers, &prompb.LabelMatcher{Type: prompb.LabelMatcher_EQ, Name: l.Name, Value: l.Value})
		})
		queries[i] = q
	}
	got, err := v.server.RemoteReadAll(ctx, queries)
	if err != nil {
		return fmt.Errorf("reading back samples from %s on: %w", timeOf(lo), err)
	}
	v.result.mu.Lock()
	defer v.result.mu.Unlock()
	for i := range batch {
		v.series(&batch[i], got[i])
		v.done.Add(int64(len(batch[i].points)))
	}
	return nil
}

// series compares one series. A query for it may find others, which have more labels.
func (v *verifier) series(want *stored, found []client.Series) {
	v.result.Series++
	var got []client.Sample
	for i := range found {
		if labels.Equal(labels.FromMap(found[i].Metric), want.labels) {
			got = found[i].Values
		}
	}
	points := want.points
	slices.SortStableFunc(points, func(a, b point) int { return int(min(max(a.at-b.at, -1), 1)) })
	for i := range points {
		p := &points[i]
		if i+1 < len(points) && points[i+1].at == p.at {
			continue // of two values at one time the later one counts
		}
		for len(got) > 0 && got[0].Ms < p.at {
			v.result.More++
			got = got[1:]
		}
		if len(got) == 0 || got[0].Ms > p.at {
			v.result.Missing++
			v.example("%s at %s is missing", want.labels, timeOf(p.at))
			continue
		}
		s := got[0]
		got = got[1:]
		switch {
		case p.equals(&s):
			v.result.Same++
		case p.isStale() && !isStale(&s):
			v.result.Replaced++
		default:
			v.result.Different++
			v.example("%s at %s is %s, expected %s", want.labels, timeOf(p.at), describe(&s), p)
		}
	}
	v.result.More += int64(len(got))
}

func (v *verifier) example(format string, args ...any) {
	if len(v.result.Examples) == maxExamples {
		return
	}
	text := fmt.Sprintf(format, args...)
	if v.note != "" {
		text += "; " + v.note
	}
	v.result.Examples = append(v.result.Examples, text)
}

// equals reports whether a sample that was read back is the point, bit for bit. Empty buckets and other spans
// have the same meaning. Of the reset hints only that of gauges is kept: the others compare a sample with the
// one before.
func (p *point) equals(s *client.Sample) bool {
	if p.isStale() && isStale(s) && (s.Histogram == nil) == (p.integer == nil && p.float == nil) {
		return true
	}
	switch h := s.Histogram; {
	case p.integer != nil:
		return h != nil && !h.IsFloatHistogram() && gauge(p.integer.CounterResetHint) == (h.ResetHint == prompb.Histogram_GAUGE) &&
			p.integer.Copy().Compact(0).Equals(h.ToIntHistogram().Compact(0)) && math.Signbit(p.integer.ZeroThreshold) == math.Signbit(h.ZeroThreshold)
	case p.float != nil:
		return h != nil && h.IsFloatHistogram() && gauge(p.float.CounterResetHint) == (h.ResetHint == prompb.Histogram_GAUGE) &&
			p.float.Copy().Compact(0).Equals(h.ToFloatHistogram().Compact(0)) && math.Signbit(p.float.ZeroThreshold) == math.Signbit(h.ZeroThreshold)
	}
	return s.Histogram == nil && s.Bits == p.bits
}

func gauge(hint histogram.CounterResetHint) bool { return hint == histogram.GaugeType }

func (p *point) isStale() bool {
	switch {
	case p.integer != nil:
		return value.IsStaleNaN(p.integer.Sum)
	case p.float != nil:
		return value.IsStaleNaN(p.float.Sum)
	}
	return p.bits == value.StaleNaN
}

func isStale(s *client.Sample) bool {
	if s.Histogram != nil {
		return value.IsStaleNaN(s.Histogram.Sum)
	}
	return s.Bits == value.StaleNaN
}

// String describes the point for people.
func (p *point) String() string {
	switch {
	case p.integer != nil:
		return p.integer.String()
	case p.float != nil:
		return p.float.String()
	}
	return floatText(p.bits)
}

func describe(s *client.Sample) string {
	switch h := s.Histogram; {
	case h == nil:
		return floatText(s.Bits)
	case h.IsFloatHistogram():
		return h.ToFloatHistogram().String()
	default:
		return h.ToIntHistogram().String()
	}
}

func floatText(bits uint64) string {
	return fmt.Sprintf("%v (bits %016x)", math.Float64frombits(bits), bits)
}

func timeOf(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }
