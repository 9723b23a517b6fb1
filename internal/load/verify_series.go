package load

import (
	"context"
	"fmt"
	"maps"
	"math"

	"github.com/shaledb/shale/internal/model"
)

// maxRoundsPerQuery keeps answers small.
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

// stretch is a series in the rounds [first, end), and what was seen of it.
type stretch struct {
	g                 int64
	first, end        int
	selector          string
	samples, markers  bitmap
	equal, ended      int64
	unacked           int64
	cycles            map[int]bool
	want              value
	histogram, marked bool
}

func (c *checker) stretch(ctx context.Context, g int64, first, end int) {
	ls := c.from.selectedBy(g)
	s := &stretch{g: g, first: first, end: end, selector: selectorOf(ls), cycles: map[int]bool{}, marked: c.raw()}
	s.samples, s.markers = make(bitmap, (end-first+63)/64), make(bitmap, (end-first+63)/64)
	s.histogram = c.State.RemoteWrite != nil && c.State.RemoteWrite.Value.Histogram()
	from, to := c.State.Timeline.ms(first), c.State.Timeline.ms(end)-1
	var curves []curve
	if c.ask(func() (err error) {
		curves, err = c.read(ctx, g, ls, from, to)
		return err
	}) != nil {
		return
	}
	for _, curve := range curves {
		c.curve(s, curve)
	}
	c.missing(s)
	if f := c.State.RemoteWrite; f != nil && c.Exemplars && f.Exemplars > 0 {
		c.exemplars(ctx, s, from, to)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out.Compared += s.equal
	c.out.Markers += s.ended
	c.out.Unacked += s.unacked
}

// curve compares one set of labels with the samples of its cycle.
func (c *checker) curve(s *stretch, got curve) {
	cycle, ok := c.from.cycleOf(got.Metric)
	if !ok || s.cycles[cycle] {
		c.note(&c.out.Extra, 1, "%s: there is one more series: %v", s.selector, got.Metric)
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
func (c *checker) sample(s *stretch, cycle int, got sample) {
	round, exact := c.from.roundAt(s.g, got.ms)
	if !exact || round < s.first || round >= s.end {
		c.note(&c.out.Extra, 1, "%s: sample at %d ms, which is no time of the load", s.selector, got.ms)
		return
	}
	known, seen, why := c.from.standing(s.g, round), s.samples, ""
	marker := c.from.cycle(s.g, round) != cycle
	if marker {
		ended, of := c.from.ended(s.g, round)
		if ended != cycle {
			of = never
		}
		known, seen = of, s.markers
		if got.bits != model.StaleNaN || s.histogram != (got.histogram != nil) {
			why = "no stale marker"
		}
	} else {
		c.from.value(s.g, round, &s.want)
		why = s.want.differs(got)
	}
	switch first := known != never && seen.set(round-s.first); {
	case known == never:
		c.note(&c.out.Extra, 1, "%s: sample at %d ms (round %d, cycle %d), which was not sent", s.selector, got.ms, round, cycle)
	case why != "":
		c.note(&c.out.Wrong, 1, "%s: at %d ms (round %d, cycle %d) %s", s.selector, got.ms, round, cycle, why)
	case !first:
		c.note(&c.out.Extra, 1, "%s: sample at %d ms comes twice", s.selector, got.ms)
	case known == perhaps:
		s.unacked++
	case marker:
		s.ended++
	default:
		s.equal++
	}
}

// missing notes what should have been there.
func (c *checker) missing(s *stretch) {
	for round := s.first; round < s.end; round++ {
		if !s.samples.has(round-s.first) && c.from.standing(s.g, round) == surely {
			c.note(&c.out.Missing, 1, "%s: acknowledged sample of round %d at %d ms is missing", s.selector, round, c.from.ms(s.g, round))
		}
		if !s.marked || s.markers.has(round-s.first) {
			continue
		}
		if cycle, known := c.from.ended(s.g, round); known == surely {
			c.note(&c.out.Missing, 1, "%s: acknowledged stale marker of cycle %d at %d ms is missing", s.selector, cycle, c.from.ms(s.g, round))
		}
	}
}

// differs says in what a sample is not the value that was sent; empty if in nothing.
func (v *value) differs(got sample) string {
	switch {
	case v.histogram != nil && got.histogram != nil:
		return v.histogram.differs(got.histogram)
	case v.histogram != nil:
		return "a float, want a histogram"
	case got.histogram != nil:
		return "a histogram, want a float"
	case got.bits != v.bits:
		return differentBits(got.bits, v.bits)
	}
	return ""
}

func differentBits(got, want uint64) string {
	return fmt.Sprintf("value %v (bits %x), want %v (bits %x)", math.Float64frombits(got), got, math.Float64frombits(want), want)
}
