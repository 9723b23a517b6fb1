package verify

import (
	"context"
	"fmt"
	"maps"
	"math"

	"github.com/shaledb/shale/internal/client"
	"github.com/shaledb/shale/internal/load/fleet"
	"github.com/shaledb/shale/internal/load/statefile"
	"github.com/shaledb/shale/internal/model"
)

// maxRoundsPerQuery keeps responses small.
const maxRoundsPerQuery = 5000

// series compares one series in all of its cycles.
func (c *checker) series(ctx context.Context, g int64) {
	rounds := c.from.rounds()
	for first := 0; first < rounds && ctx.Err() == nil; first += maxRoundsPerQuery {
		c.stretch(ctx, g, first, min(first+maxRoundsPerQuery, rounds))
	}
	if f := c.State.RemoteWrite; f != nil && c.Metadata && f.Metadata && ctx.Err() == nil {
		c.metadata(ctx, g)
	}
	c.add(&c.out.Series, 1)
}

// stretch is a series in the rounds [first, end), and the samples seen of it.
type stretch struct {
	g                 int64
	first, end        int
	selector          string
	samples, markers  statefile.Bitmap
	equal, ended      int64
	unacked           int64
	cycles            map[int]bool
	want              value
	histogram, marked bool
}

func (c *checker) stretch(ctx context.Context, g int64, first, end int) {
	if curves, err := c.curves(ctx, g, c.from.Matchers(g), first, end); err == nil {
		c.compare(ctx, g, first, end, curves)
	}
}

// curves reads what the rounds [first, end) have of the series with the given labels, of which g is one.
func (c *checker) curves(ctx context.Context, g int64, ls []fleet.Matcher, first, end int) (curves []client.Series, _ error) {
	return curves, c.ask(func() (err error) {
		curves, err = c.read(ctx, g, ls, c.State.Timeline.Ms(first), c.State.Timeline.Ms(end)-1)
		return err
	})
}

// compare compares what was read of one series.
func (c *checker) compare(ctx context.Context, g int64, first, end int, curves []client.Series) {
	s := &stretch{g: g, first: first, end: end, selector: fleet.SelectorOf(c.from.Matchers(g)), cycles: map[int]bool{}, marked: c.raw()}
	s.samples, s.markers = make(statefile.Bitmap, (end-first+63)/64), make(statefile.Bitmap, (end-first+63)/64)
	s.histogram = c.State.RemoteWrite != nil && c.State.RemoteWrite.Value.Histogram()
	for _, curve := range curves {
		c.curve(s, curve)
	}
	c.missing(s)
	if f := c.State.RemoteWrite; f != nil && c.Exemplars && f.Exemplars > 0 {
		c.exemplars(ctx, s, c.State.Timeline.Ms(first), c.State.Timeline.Ms(end)-1)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out.Compared += s.equal
	c.out.Markers += s.ended
	c.out.Unacked += s.unacked
}

// curve compares one set of labels with the samples of its cycle.
func (c *checker) curve(s *stretch, got client.Series) {
	cycle, ok := c.from.CycleOf(got.Metric)
	if !ok || s.cycles[cycle] {
		c.note(&c.out.Extra, 1, "%s: one series too many: %v", s.selector, got.Metric)
		return
	}
	s.cycles[cycle] = true
	if want := c.from.LabelsOf(s.g, cycle); !maps.Equal(got.Metric, want) {
		c.note(&c.out.Wrong, 1, "%s: labels %v, want %v", s.selector, got.Metric, want)
	}
	for _, sample := range got.Values {
		c.sample(s, cycle, sample)
	}
}

// sample compares one sample of a cycle, and marks it as seen.
func (c *checker) sample(s *stretch, cycle int, got client.Sample) {
	round, exact := c.from.roundAt(s.g, got.Ms)
	if !exact || round < s.first || round >= s.end {
		c.note(&c.out.Extra, 1, "%s: sample at %d ms, which is not a time of the load", s.selector, got.Ms)
		return
	}
	known, seen, why := c.from.certainty(s.g, round), s.samples, ""
	marker := c.from.cycle(s.g, round) != cycle
	if marker {
		ended, of := c.from.ended(s.g, round)
		if ended != cycle {
			of = never
		}
		known, seen = of, s.markers
		if got.Bits != model.StaleNaN || s.histogram != (got.Histogram != nil) {
			why = "no stale marker"
		}
	} else {
		c.from.value(s.g, round, &s.want)
		why = s.want.differs(got)
	}
	switch first := known != never && seen.Set(round-s.first); {
	case known == never:
		c.note(&c.out.Extra, 1, "%s: sample at %d ms (round %d, cycle %d), which was not sent", s.selector, got.Ms, round, cycle)
	case why != "":
		c.note(&c.out.Wrong, 1, "%s: at %d ms (round %d, cycle %d) %s", s.selector, got.Ms, round, cycle, why)
	case !first:
		c.note(&c.out.Extra, 1, "%s: sample at %d ms comes twice", s.selector, got.Ms)
	case known == perhaps:
		s.unacked++
	case marker:
		s.ended++
	default:
		s.equal++
	}
}

// missing notes samples that should have been found.
func (c *checker) missing(s *stretch) {
	for round := s.first; round < s.end; round++ {
		if !s.samples.Has(round-s.first) && c.from.certainty(s.g, round) == surely {
			c.note(&c.out.Missing, 1, "%s: acknowledged sample of round %d at %d ms is missing", s.selector, round, c.from.ms(s.g, round))
		}
		if !s.marked || s.markers.Has(round-s.first) {
			continue
		}
		if cycle, known := c.from.ended(s.g, round); known == surely {
			c.note(&c.out.Missing, 1, "%s: acknowledged stale marker of cycle %d at %d ms is missing", s.selector, cycle, c.from.ms(s.g, round))
		}
	}
}

// differs describes how a sample differs from the value that was sent; empty if it does not.
func (v *value) differs(got client.Sample) string {
	switch {
	case v.histogram != nil && got.Histogram != nil:
		return differentHistogram(v.histogram, got.Histogram)
	case v.histogram != nil:
		return "a float, want a histogram"
	case got.Histogram != nil:
		return "a histogram, want a float"
	case got.Bits != v.bits:
		return differentBits(got.Bits, v.bits)
	}
	return ""
}

func differentBits(got, want uint64) string {
	return fmt.Sprintf("value %v (bits %x), want %v (bits %x)", math.Float64frombits(got), got, math.Float64frombits(want), want)
}
