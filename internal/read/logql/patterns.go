package logql

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/patterns"
)

// PatternQuery asks for the patterns of lines.
type PatternQuery struct {
	Tenants []string
	// Prepared is a query for lines.
	Prepared *Prepared
	// Start is the first time that counts, End the first that does not any more, and Step the width of the
	// intervals in which lines are counted, in nanoseconds.
	Start, End, Step int64
	Quota            *model.Quota
	Cost             *model.Cost
}

// errOnlyMatchers refuses a query for numbers, in Loki's words.
var errOnlyMatchers = &refused{"only label matchers are supported", model.ErrInvalid}

// Patterns returns the patterns of the selected lines. Where the kept patterns are complete, no line is read.
// Other lines are estimated from a sample: those of the time before, and those of a query with stages.
func (e *Engine) Patterns(ctx context.Context, q *PatternQuery) ([]patterns.Series, error) {
	if !q.Prepared.WantsLines() {
		return nil, errOnlyMatchers
	}
	if q.End <= max(q.Start, 0) { // lines before 1970 have no patterns
		return nil, nil
	}
	unit := int64(time.Second)
	totals := patterns.NewTotals(q.Start/unit, (q.End-1)/unit+1, q.Step/unit, q.Quota)
	chosen, matchers := selectors(q.Prepared.log.Matchers, q.Tenants)
	for _, tenant := range chosen {
		since := int64(math.MaxInt64)
		if e.patterns != nil && len(q.Prepared.log.Stages) == 0 {
			kept, err := e.patterns.Add(tenant, matchers, totals)
			if err != nil {
				return nil, err
			}
			if since = max(min(kept, math.MaxInt64/unit), math.MinInt64/unit) * unit; since < q.End {
				// Patterns become more general with lines of any time.
				q.Cost.Reach.Bound(math.MinInt64)
			}
		}
		r, ok := rangeOf(q.Start, min(q.End, since))
		if !ok {
			continue
		}
		s := &patternSample{sample: patterns.NewSample(q.Quota), query: q}
		err := s.read(ctx, e, &model.Request{
			Tenant: tenant, Signal: model.Logs, Family: model.Text, Matchers: matchers, Range: r, TextFilter: q.Prepared.program.TextFilter,
			Sample: &model.TextSample{Lines: spreadLines, Plain: len(q.Prepared.log.Stages) == 0},
			Quota:  q.Quota, Cost: q.Cost,
		})
		if err == nil {
			err = s.sample.AddTo(totals)
		}
		if err != nil {
			return nil, err
		}
	}
	return totals.Series()
}

const (
	// sampledChunks is how many chunks a sample reads, and sampledLines how many lines of each.
	sampledChunks = 64
	sampledLines  = 128
	// spreadLines is how many lines a source chooses that chooses them itself. They are spread evenly, so that
	// fewer say as much.
	spreadLines = 4096
)

// patternSample reads a sample of lines. Chunks are chosen by priority sampling: a chunk's priority is its
// number of lines divided by a random number up to 1, and those with the highest priorities are read. A chunk
// then stands for as many lines as it has or, if that is more, as the highest priority that was left out. The
// sum is right on average. Chunks that are a sample already are all read.
type patternSample struct {
	sample *patterns.Sample
	query  *PatternQuery
	chosen []sampledChunk
	ready  []sampledChunk // that are a sample already
	cut    float64        // the highest priority that was left out
}

type sampledChunk struct {
	model.TextChunk
	labels   model.Labels
	lines    float64 // within the range, about
	priority float64
}

// read chooses chunks and mines lines of them.
func (s *patternSample) read(ctx context.Context, e *Engine, req *model.Request) error {
	set, err := e.read.SelectText(ctx, req)
	if err != nil {
		return err
	}
	defer set.Close()
	// The same query gets the same sample.
	random := sequence(1)
	var chunks []model.TextChunk
	for set.Next(ctx) {
		if chunks, err = set.Chunks(ctx, chunks[:0]); err != nil {
			return err
		}
		var labels model.Labels
		for i := range chunks {
			lines := linesWithin(&chunks[i], set.Range())
			c := sampledChunk{chunks[i], nil, lines, lines / random.next()}
			if c.priority <= s.cut && c.StandsFor == 0 {
				continue
			}
			if labels == nil {
				labels = slices.Clone(set.Labels())
			}
			c.labels = labels
			if c.StandsFor > 0 {
				s.ready = append(s.ready, c)
				continue
			}
			if s.chosen = append(s.chosen, c); len(s.chosen) == 2*sampledChunks {
				s.choose()
			}
		}
	}
	if err := set.Err(); err != nil {
		return err
	}
	s.choose()
	s.chosen = append(s.chosen, s.ready...)
	return s.mine(ctx, set.Range(), e.workers)
}

// choose leaves out all but the chunks of the highest priorities.
func (s *patternSample) choose() {
	if len(s.chosen) <= sampledChunks {
		return
	}
	slices.SortStableFunc(s.chosen, func(a, b sampledChunk) int {
		if a.priority > b.priority {
			return -1
		}
		return 1
	})
	s.cut = max(s.cut, s.chosen[sampledChunks].priority)
	clear(s.chosen[sampledChunks:])
	s.chosen = s.chosen[:sampledChunks]
}

// linesWithin returns about how many lines of a chunk are within a range.
func linesWithin(c *model.TextChunk, r model.TimeRange) float64 {
	from, to := max(c.Min, r.Min), min(c.Max, r.Max)
	if c.Max <= c.Min || from == c.Min && to == c.Max {
		return float64(c.Rows)
	}
	return max(1, float64(c.Rows)*(float64(to)-float64(from))/(float64(c.Max)-float64(c.Min)))
}

// sequence is a sequence of random numbers.
type sequence uint64

// next returns a number greater than 0 and at most 1.
func (s *sequence) next() float64 {
	*s += 0x9e3779b97f4a7c15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float64((z^z>>31)>>11+1) / (1 << 53)
}
