package load

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// standing says what is known of a sample before the store is asked.
type standing uint8

const (
	never   standing = iota // was not sent
	perhaps                 // was sent, and nobody said that it was stored
	surely                  // must be in the store
)

// origin computes the samples of a load again.
type origin interface {
	Total() int64
	Selector(g int64) string
	LabelsOf(g int64) map[string]string
	Bits(g int64, round int) uint64
	// standing takes a series and a round.
	standing(g int64, round int) standing
	// rounds is the number of rounds of which anything may have been sent.
	rounds() int
}

// Verification is what reading back a load has found. The samples of a series are compared bit for bit.
type Verification struct {
	Series    int64 `json:"series"`
	Compared  int64 `json:"samples_equal"`
	Missing   int64 `json:"acked_but_missing"`
	Wrong     int64 `json:"wrong"`           // another value, or other labels
	Extra     int64 `json:"extra"`           // never sent
	Unacked   int64 `json:"unacked_present"` // nobody acknowledged them, and they are there, which is allowed
	Failed    int64 `json:"failed_queries"`
	CountedOf int64 `json:"counted_of,omitempty"` // samples that the counts must reach
	Counted   int64 `json:"counted,omitempty"`
	Short     int64 `json:"counted_short,omitempty"` // by how many samples counts fell short
	Over      int64 `json:"counted_over,omitempty"`  // by how many they were too high
	Queries   int64 `json:"queries"`
	// Examples are the first failures, in words.
	Examples []string `json:"examples,omitempty"`
	Seconds  float64  `json:"seconds"`
}

// OK reports whether everything that was acknowledged is there, unchanged, and nothing else is.
func (v *Verification) OK() bool {
	return v.Missing+v.Wrong+v.Extra+v.Failed+v.Short+v.Over == 0
}

// Verifier reads a load back.
type Verifier struct {
	Reader Reader
	State  *State
	// Series is how many series are drawn and compared; 0 for none, at least as many as there are for all.
	Series int64
	// Draw chooses them.
	Draw uint64
	// Counts asks for the number of samples of every metric or agent as well, at most Chunk of them in one query.
	Counts bool
	Chunk  int64
	// SentBefore is how many points of a Graphite load the server must have, if the caller knows better than the
	// counter in the state; 0 if not.
	SentBefore  uint64
	Concurrency int
	// Done, if set, is called for each series that has been compared.
	Done func()
}

// maxRoundsPerQuery keeps answers small.
const maxRoundsPerQuery = 5000

// Run reads back and compares. Its error says that it could not begin or was cut short; what was found amiss is in
// the verification.
func (v *Verifier) Run(ctx context.Context) (*Verification, error) {
	if v.Chunk < 1 || v.Concurrency < 1 || v.Series < 0 {
		return nil, fmt.Errorf("%w: load: verify: series, chunk and concurrency must be positive", model.ErrInvalid)
	}
	began := time.Now()
	c := &checker{Verifier: v, from: v.origin()}
	var next atomic.Int64
	series := min(v.Series, c.from.Total())
	var wg sync.WaitGroup
	for range v.Concurrency {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < series && ctx.Err() == nil; i = next.Add(1) - 1 {
				c.series(ctx, v.pick(i, series, c.from.Total()))
				if v.Done != nil {
					v.Done()
				}
			}
		})
	}
	wg.Wait()
	if v.Counts {
		c.counts(ctx)
	}
	c.out.Seconds = time.Since(began).Seconds()
	if err := ctx.Err(); err != nil {
		return &c.out, fmt.Errorf("%w: load: verify: %w", model.ErrClosed, err)
	}
	return &c.out, nil
}

// pick returns the i-th of n series that are drawn of total: one from each n-th part, so that none comes twice.
func (v *Verifier) pick(i, n, total int64) int64 {
	from, to := part(i, n, total), part(i+1, n, total)
	return from + int64(draw(v.Draw, uint64(i), 0)%uint64(to-from))
}

// part returns i*total/n, rounded down, without overflow for totals up to maxSeries.
func part(i, n, total int64) int64 { return total/n*i + total%n*i/n }

// checker collects what is found. Its verification is guarded by mu.
type checker struct {
	*Verifier
	from origin
	mu   sync.Mutex
	out  Verification
}

// maxExamples bounds the failures that are told in words.
const maxExamples = 10

// note adds a failure of n samples to one of the counters.
func (c *checker) note(counter *int64, n int64, format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*counter += n
	if len(c.out.Examples) < maxExamples {
		c.out.Examples = append(c.out.Examples, fmt.Sprintf(format, args...))
	}
}

// series compares one series.
func (c *checker) series(ctx context.Context, g int64) {
	rounds := c.from.rounds()
	for first := 0; first < rounds && ctx.Err() == nil; first += maxRoundsPerQuery {
		c.stretch(ctx, g, first, min(first+maxRoundsPerQuery, rounds))
	}
	c.mu.Lock()
	c.out.Series++
	c.mu.Unlock()
}

// stretch compares the rounds [first, end) of a series.
func (c *checker) stretch(ctx context.Context, g int64, first, end int) {
	from, to := c.State.Timeline.ms(first), c.State.Timeline.ms(end-1)
	selector := c.from.Selector(g)
	curves, err := c.ask(func() ([]curve, error) { return c.Reader.query(ctx, selector+window(from, to), to) })
	if err != nil {
		return
	}
	seen := make(bitmap, (end-first+63)/64)
	if len(curves) > 1 {
		c.note(&c.out.Extra, int64(len(curves)-1), "%s: %d series, want 1", selector, len(curves))
	}
	if len(curves) > 0 {
		c.curve(g, curves[0], first, end, seen)
	}
	for round := first; round < end; round++ {
		if !seen.has(round-first) && c.from.standing(g, round) == surely {
			c.note(&c.out.Missing, 1, "%s: acknowledged sample of round %d at %d ms is missing", selector, round, c.State.Timeline.ms(round))
		}
	}
}

// curve compares what a query gave for rounds [first, end) and marks the rounds that are there.
func (c *checker) curve(g int64, got curve, first, end int, seen bitmap) {
	selector := c.from.Selector(g)
	if want := c.from.LabelsOf(g); !sameLabels(got.Metric, want) {
		c.note(&c.out.Wrong, 1, "%s: labels %v, want %v", selector, got.Metric, want)
	}
	var equal, unacked int64
	for _, s := range got.Values {
		round, exact := c.State.Timeline.Round(s.ms * int64(time.Millisecond))
		if !exact || round < first || round >= end {
			c.note(&c.out.Extra, 1, "%s: sample at %d ms, which is no time of the load", selector, s.ms)
			continue
		}
		known := c.from.standing(g, round)
		switch want := c.from.Bits(g, round); {
		case known == never:
			c.note(&c.out.Extra, 1, "%s: sample at %d ms (round %d), which was not sent", selector, s.ms, round)
		case s.bits != want:
			c.note(&c.out.Wrong, 1, "%s: at %d ms value %v (bits %x), want %v (bits %x)", selector, s.ms,
				math.Float64frombits(s.bits), s.bits, math.Float64frombits(want), want)
		case !seen.set(round - first):
			c.note(&c.out.Extra, 1, "%s: sample at %d ms comes twice", selector, s.ms)
		case known == perhaps:
			unacked++
		default:
			equal++
		}
		if known != never && s.bits != c.from.Bits(g, round) {
			seen.set(round - first) // wrong, not missing as well
		}
	}
	c.mu.Lock()
	c.out.Compared += equal
	c.out.Unacked += unacked
	c.mu.Unlock()
}

func sameLabels(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || v != w {
			return false
		}
	}
	return true
}

// ask runs a query and notes if it fails.
func (c *checker) ask(query func() ([]curve, error)) ([]curve, error) {
	curves, err := query()
	c.mu.Lock()
	c.out.Queries++
	c.mu.Unlock()
	if err != nil {
		c.note(&c.out.Failed, 1, "%v", err)
	}
	return curves, err
}

// ms returns the time of a round in Unix milliseconds.
func (t Timeline) ms(round int) int64 { return t.At(round) / int64(time.Millisecond) }
