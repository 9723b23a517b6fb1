package patterns

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/shaledb/shale/internal/model"
)

const (
	// minLines is how many lines a pattern must have to be returned. Of more than maxPatterns, those with the
	// most lines are returned. Both are Loki's.
	minLines    = 30
	maxPatterns = 300
	// sampleBytes and patternBytes are about what a sample and a pattern of a result take.
	sampleBytes  = 48
	patternBytes = 128
)

// Series is a pattern with its numbers of lines.
type Series struct {
	Pattern, Level string
	Samples        []Count // by time, one for each step from the first to the last that has lines
}

// Count is the number of lines in the step that begins at a time, in Unix seconds.
type Count struct{ Begin, Lines int64 }

// Totals adds up the lines of patterns in the steps of a range. It is used by one goroutine.
type Totals struct {
	start, end, step int64 // Unix seconds
	quota            *model.Quota
	series           map[seriesID]map[int64]float64 // lines by the number of the step
}

type seriesID struct{ pattern, level string }

// NewTotals returns Totals for lines from start to before end, in Unix seconds; start is rounded down to 10
// seconds. Steps are at least as long. The memory is charged to the quota and stays charged.
func NewTotals(start, end, step int64, quota *model.Quota) *Totals {
	start = max(start, 0)
	return &Totals{start: start - start%fine, end: min(end, math.MaxUint32), step: max(step, fine), quota: quota, series: make(map[seriesID]map[int64]float64)}
}

// add adds the lines of a miner, which has none before since. Buckets that begin before fineSince are coarse.
func (t *Totals) add(m *Miner, level string, since, fineSince int64) error {
	for _, list := range m.structures {
		for _, c := range list {
			if len(c.counts) == 0 || int64(c.counts[len(c.counts)-1].begin)+coarse <= t.start || int64(c.counts[0].begin) >= t.end {
				continue
			}
			steps, err := t.steps(seriesID{c.String(), level})
			if err != nil {
				return err
			}
			before := len(steps)
			for _, b := range c.counts {
				begin := int64(b.begin)
				if begin >= fineSince {
					t.put(steps, begin, float64(b.lines))
				} else {
					t.spread(steps, max(begin, since), begin+coarse, float64(b.lines))
				}
			}
			if err := t.quota.TakeBytes(sampleBytes * int64(len(steps)-before)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *Totals) steps(id seriesID) (map[int64]float64, error) {
	if s, ok := t.series[id]; ok {
		return s, nil
	}
	if err := t.quota.TakeBytes(patternBytes + int64(len(id.pattern))); err != nil {
		return nil, err
	}
	s := make(map[int64]float64)
	t.series[id] = s
	return s, nil
}

// put adds the lines of a fine bucket to its step.
func (t *Totals) put(steps map[int64]float64, begin int64, lines float64) {
	if begin >= t.start && begin < t.end {
		steps[begin/t.step] += lines
	}
}

// spread adds the lines of a coarse bucket to the steps that it overlaps.
func (t *Totals) spread(steps map[int64]float64, begin, end int64, lines float64) {
	for from := max(begin, t.start); from < min(end, t.end); {
		to := min((from/t.step+1)*t.step, end, t.end)
		steps[from/t.step] += lines * float64(to-from) / float64(end-begin)
		from = to
	}
}

// Series returns the patterns with the most lines first.
func (t *Totals) Series() ([]Series, error) {
	type total struct {
		Series
		lines float64
		steps map[int64]float64
	}
	var all []total
	for id, steps := range t.series {
		x := total{Series: Series{Pattern: id.pattern, Level: id.level}, steps: steps}
		for _, n := range steps {
			x.lines += n
		}
		if math.Round(x.lines) >= minLines {
			all = append(all, x)
		}
	}
	slices.SortFunc(all, func(a, b total) int {
		return cmp.Or(cmp.Compare(math.Round(b.lines), math.Round(a.lines)), cmp.Compare(a.Pattern, b.Pattern), cmp.Compare(a.Level, b.Level))
	})
	out := make([]Series, min(len(all), maxPatterns))
	for i := range out {
		out[i] = all[i].Series
		at := slices.Sorted(maps.Keys(all[i].steps))
		n := at[len(at)-1] - at[0] + 1
		if err := t.quota.TakeBytes(16 * n); err != nil {
			return nil, err
		}
		out[i].Samples = t.samples(at, all[i].steps)
	}
	return out, nil
}

// samples returns the lines of each step, in whole numbers. What rounding takes from a step goes to the next.
func (t *Totals) samples(at []int64, steps map[int64]float64) []Count {
	out := make([]Count, 0, at[len(at)-1]-at[0]+1)
	rest := 0.0
	for n := at[0]; n <= at[len(at)-1]; n++ {
		exact := steps[n] + rest
		lines := math.Round(exact)
		rest = exact - lines
		out = append(out, Count{n * t.step, int64(lines)})
	}
	return out
}
