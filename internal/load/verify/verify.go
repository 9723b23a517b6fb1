package verify

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/prometheus/prompb"

	"github.com/shaledb/shale/internal/client"
	"github.com/shaledb/shale/internal/load/fleet"
	"github.com/shaledb/shale/internal/load/random"
	"github.com/shaledb/shale/internal/load/statefile"
	"github.com/shaledb/shale/internal/model"
)

// Samples is the result of reading back samples, which are compared bit for bit.
type Samples struct {
	Series    int64 `json:"series"`
	Compared  int64 `json:"samples_equal"`
	Markers   int64 `json:"stale_markers_equal,omitempty"`
	Exemplars int64 `json:"exemplars_equal,omitempty"`
	Metadata  int64 `json:"metadata_equal,omitempty"` // metrics
	Missing   int64 `json:"acked_but_missing"`
	Wrong     int64 `json:"wrong"`           // another value, or other labels
	Extra     int64 `json:"extra"`           // never sent
	Unacked   int64 `json:"unacked_present"` // stored without an acknowledgement, which is allowed
	Failed    int64 `json:"failed_queries"`
	CountedOf int64 `json:"counted_of,omitempty"` // samples that the counts must reach
	Counted   int64 `json:"counted,omitempty"`
	Short     int64 `json:"counted_short,omitempty"` // by how many samples counts fell short
	Over      int64 `json:"counted_over,omitempty"`  // by how many they were too high
	// Unproven is set if nothing was acknowledged, so the store need not have anything and the result proves
	// nothing.
	Unproven bool  `json:"nothing_acknowledged,omitempty"`
	Queries  int64 `json:"queries"`
	// Examples are the first failures, in words.
	Examples []string `json:"examples,omitempty"`
	Seconds  float64  `json:"seconds"`
}

// OK reports whether the server has every acknowledged sample unchanged, and no other. It is false if nothing
// was acknowledged.
func (v *Samples) OK() bool {
	return !v.Unproven && v.Missing+v.Wrong+v.Extra+v.Failed+v.Short+v.Over == 0
}

// Over is the API that series are read back with.
type Over uint8

// The APIs. A query returns floats, but neither stale markers nor whole histograms; remote read returns
// everything.
const (
	OverAuto Over = iota // remote read for histograms and stale markers, else a query
	OverQuery
	OverRemoteRead
)

var overNames = [...]string{"auto", "query", "remote-read"}

// UnmarshalText reads the name of an API. Its error is of class [model.ErrInvalid].
func (o *Over) UnmarshalText(text []byte) error {
	i := slices.Index(overNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("%w: %q: want auto, query or remote-read", model.ErrInvalid, text)
	}
	*o = Over(i)
	return nil
}

// SampleVerifier reads a load back.
type SampleVerifier struct {
	// Server is the one to read back from, as the tenant that the load was written as. With several tenants a
	// number is appended.
	Server *client.Server
	State  *statefile.State
	// Series is how many series are drawn and compared. 0: none. A number above the total: all.
	Series int64
	// Draw is the seed that selects them.
	Draw uint64
	Over Over
	// Groups draws groups of series instead, and reads each with one query: all series of a metric and a target
	// of remote write. Series is rounded up to whole groups. In a large store this is far faster, and it also
	// finds series that were never sent.
	Groups bool
	// Exemplars and Metadata also compare those of the drawn series and of their metrics.
	Exemplars, Metadata bool
	// Counts also compares the number of samples of every metric or agent, with at most Chunk samples in one
	// query.
	Counts bool
	Chunk  int64
	// SentBefore is how many points of a Graphite load the server must have, if the caller knows better than the
	// counter in the state; else 0.
	SentBefore  uint64
	Concurrency int
	// Done, if set, is called for each series that has been compared.
	Done func()
}

// check returns an error of class [model.ErrInvalid] unless the load can be verified with these settings.
func (v *SampleVerifier) check() error {
	f := v.State.RemoteWrite
	switch {
	case v.Chunk < 1 || v.Concurrency < 1 || v.Series < 0:
		return fmt.Errorf("%w: load: verify: series, chunk and concurrency must be positive", model.ErrInvalid)
	case v.Groups && f == nil:
		return fmt.Errorf("%w: load: verify: only loads of remote write have groups", model.ErrInvalid)
	case v.Over == OverQuery && f != nil && f.Value.Histogram() && v.Series > 0:
		return fmt.Errorf("%w: load: verify: a query does not return histograms as they were sent; use remote-read", model.ErrInvalid)
	}
	return nil
}

// raw reports whether series are read by remote read.
func (v *SampleVerifier) raw() bool {
	f := v.State.RemoteWrite
	return v.Over == OverRemoteRead ||
		v.Over == OverAuto && f != nil && (f.Value.Histogram() || f.Churn.StaleMarkers && f.Churn.SeriesInterval > 0)
}

// Run reads back and compares. It returns an error if it cannot begin or is cut short; differences are in the
// result.
func (v *SampleVerifier) Run(ctx context.Context) (*Samples, error) {
	if err := v.check(); err != nil {
		return nil, err
	}
	c := &checker{SampleVerifier: v, from: v.origin()}
	c.out.Unproven = !v.State.Promised(v.SentBefore)
	counts := func() {
		if v.Counts {
			c.counts(ctx)
		}
	}
	if v.Groups {
		size := int64(v.State.RemoteWrite.Series)
		return c.over(ctx, (v.Series+size-1)/size, c.from.Total()/size, func(group int64) { c.group(ctx, group*size, size) }, counts)
	}
	return c.over(ctx, v.Series, c.from.Total(), func(g int64) {
		c.series(ctx, g)
		c.done()
	}, counts)
}

// done tells that a series has been compared.
func (c *checker) done() {
	if c.Done != nil {
		c.Done()
	}
}

// over draws n of the total and compares them, and then calls then.
func (c *checker) over(ctx context.Context, n, total int64, compare func(g int64), then func()) (*Samples, error) {
	began := time.Now()
	var next atomic.Int64
	series := min(n, total)
	var wg sync.WaitGroup
	for range c.Concurrency {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < series && ctx.Err() == nil; i = next.Add(1) - 1 {
				compare(c.pick(i, series, total))
			}
		})
	}
	wg.Wait()
	if then != nil {
		then()
	}
	c.out.Seconds = time.Since(began).Seconds()
	if err := ctx.Err(); err != nil {
		return &c.out, fmt.Errorf("%w: load: verify: %w", model.ErrClosed, err)
	}
	return &c.out, nil
}

// read returns the series with the given labels, over the chosen API.
func (c *checker) read(ctx context.Context, g int64, ls []fleet.Matcher, from, to int64) ([]client.Series, error) {
	if c.raw() {
		return c.server(g).RemoteRead(ctx, matchersOf(ls), from, to)
	}
	return c.server(g).Query(ctx, fleet.SelectorOf(ls)+client.Window(from, to), to)
}

func matchersOf(ls []fleet.Matcher) []*prompb.LabelMatcher {
	var ms []*prompb.LabelMatcher
	for _, l := range ls {
		ms = append(ms, &prompb.LabelMatcher{Type: prompb.LabelMatcher_EQ, Name: l.Name, Value: l.Value})
	}
	return ms
}

// pick returns the i-th of n series drawn from total: one from each n-th part, so that none is drawn twice.
func (v *SampleVerifier) pick(i, n, total int64) int64 {
	from, to := part(i, n, total), part(i+1, n, total)
	return from + int64(random.Draw(v.Draw, uint64(i), 0)%uint64(to-from))
}

// part returns i*total/n, rounded down, without overflow for totals up to maxSeries.
func part(i, n, total int64) int64 { return total/n*i + total%n*i/n }

// checker collects the findings. mu guards out and told.
type checker struct {
	*SampleVerifier
	from origin
	mu   sync.Mutex
	out  Samples
	// told has the tenants and metrics whose metadata has been compared.
	told map[metricOf]bool
}

// maxExamples bounds the failures that are described.
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

// add adds to a counter of something other than failures.
func (c *checker) add(counter *int64, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*counter += n
}

// ask makes a query, counts it, and notes its failure.
func (c *checker) ask(query func() error) error {
	err := query()
	c.add(&c.out.Queries, 1)
	if err != nil {
		c.note(&c.out.Failed, 1, "%v", err)
	}
	return err
}

// server returns the server as the tenant of a series.
func (c *checker) server(g int64) *client.Server {
	if f := c.State.RemoteWrite; f != nil {
		return c.Server.As(f.TenantName(c.Server.Tenant, f.Place(g).Tenant))
	}
	return c.Server
}
