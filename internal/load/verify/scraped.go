package verify

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/shaledb/shale/internal/client"
	"github.com/shaledb/shale/internal/load/fleet"
	"github.com/shaledb/shale/internal/load/statefile"
	"github.com/shaledb/shale/internal/load/values"
	"github.com/shaledb/shale/internal/model"
)

// ScrapeVerifier verifies the samples of scraped targets. It needs no state file: the samples of a target at
// a time are a pure function of its shape.
type ScrapeVerifier struct {
	Server *client.Server
	Fleet  fleet.Fleet
	Epoch  time.Time
	// Series is how many series are drawn and compared; Draw is the seed that selects them.
	Series int64
	Draw   uint64
	Over   Over
	// From and To bound the times that are read.
	From, To time.Time
	// Every is the scrape interval: longer gaps are missing samples. 0: unknown.
	Every time.Duration
	// Late bounds how long after the timestamp of a scrape the target may have responded: the scraper's timeout.
	Late        time.Duration
	Concurrency int
	// Done, if set, is called for each series that has been compared.
	Done func()
}

// Run reads back and compares. It returns an error if it cannot begin or is cut short.
func (v *ScrapeVerifier) Run(ctx context.Context) (*Samples, error) {
	f := &v.Fleet
	if err := f.CheckScraped(); err != nil {
		return nil, err
	}
	if !v.From.Before(v.To) || v.Every < 0 || v.Late < 0 {
		return nil, fmt.Errorf("%w: load: verify: times from %v to %v, every %v: want them in order and not negative", model.ErrInvalid, v.From, v.To, v.Every)
	}
	if v.Over == OverAuto {
		v.Over = OverRemoteRead
	}
	c := &checker{SampleVerifier: &SampleVerifier{
		Server: v.Server, Series: v.Series, Draw: v.Draw, Over: v.Over, Chunk: 1, Concurrency: v.Concurrency, Done: v.Done,
		State: &statefile.State{Header: statefile.Header{RemoteWrite: f}},
	}}
	if err := c.check(); err != nil {
		return nil, err
	}
	course := f.Exposed(v.Epoch.UnixNano())
	return c.over(ctx, c.Series, f.Total(), func(g int64) {
		v.series(ctx, c, &course, g)
		c.done()
	}, nil)
}

// seenBy is what one scraper has written of a series: a scraper may add labels to those of the target.
type seenBy struct {
	cycles  map[int][]client.Sample
	samples []int64 // times of all samples except markers
}

func (v *ScrapeVerifier) series(ctx context.Context, c *checker, course *fleet.Course, g int64) {
	f := &v.Fleet
	ls := f.Matchers(g)
	selector := fleet.SelectorOf(ls)
	var curves []client.Series
	if c.ask(func() (err error) {
		curves, err = c.read(ctx, g, ls, v.From.UnixMilli(), v.To.UnixMilli())
		return err
	}) != nil {
		return
	}
	scrapers := map[string]*seenBy{}
	for _, got := range curves {
		cycle, ok := f.CycleOf(got.Metric)
		want, others := f.LabelsOf(g, cycle), maps.Clone(got.Metric)
		for name, value := range want {
			ok = ok && got.Metric[name] == value
			delete(others, name)
		}
		id := fmt.Sprint(others)
		if scrapers[id] == nil {
			scrapers[id] = &seenBy{cycles: map[int][]client.Sample{}}
		}
		if s := scrapers[id]; !ok || s.cycles[cycle] != nil {
			c.note(&c.out.Wrong, 1, "%s: labels %v, want %v", selector, got.Metric, want)
		} else {
			s.cycles[cycle] = got.Values
			v.curve(c, course, s, g, cycle)
		}
	}
	if len(scrapers) == 0 {
		c.note(&c.out.Missing, 1, "%s: no sample found", selector)
	}
	for id, s := range scrapers {
		v.gaps(c, s, selector+" of "+id)
	}
	c.add(&c.out.Series, 1)
}

// curve compares the samples of one cycle.
func (v *ScrapeVerifier) curve(c *checker, course *fleet.Course, s *seenBy, g int64, cycle int) {
	p := v.Fleet.Place(g)
	var equal, markers int64
	for _, got := range s.cycles[cycle] {
		if got.Bits == model.StaleNaN {
			markers++
			continue
		}
		s.samples = append(s.samples, got.Ms)
		if why := v.differs(course, p, cycle, got); why != "" {
			c.note(&c.out.Wrong, 1, "%s: at %d ms, cycle %d: %s", v.Fleet.Selector(g), got.Ms, cycle, why)
		} else {
			equal++
		}
	}
	c.add(&c.out.Compared, equal)
	c.add(&c.out.Markers, markers)
}

// differs describes how a sample differs from all that the target exposed from its time until the scraper's
// timeout; empty if it equals one of them.
func (v *ScrapeVerifier) differs(course *fleet.Course, p fleet.Place, cycle int, got client.Sample) string {
	f, id, why := &v.Fleet, v.Fleet.Identity(p), "the target was not in this cycle"
	for ns := got.Ms * 1e6; ns <= got.Ms*1e6+int64(v.Late); {
		m := course.MomentAt(p.Target, ns)
		if m.Cycle == cycle {
			want := value{}
			if f.Value.Histogram() {
				want.histogram = &values.Histogram{}
				want.histogram.Fill(f.Value, f.GaugeHistogram(p.Metric), &m.Instant, id)
			} else {
				want.bits = f.Value.Bits(&m.Instant, id)
			}
			if why = want.differs(got); why == "" {
				return ""
			}
		}
		ns = course.Next(p.Target, &m)
	}
	return why
}

// gaps notes missing samples, and cycles that end without a marker.
func (v *ScrapeVerifier) gaps(c *checker, s *seenBy, what string) {
	slices.Sort(s.samples)
	last := v.From.UnixMilli()
	for _, ms := range append(s.samples, v.To.UnixMilli()) {
		if every := v.Every.Milliseconds(); every > 0 && ms-last > every*3/2 {
			n := max(1, (ms-last+every/2)/every-1)
			c.note(&c.out.Missing, n, "%s: no sample between %d and %d ms", what, last, ms)
		}
		last = ms
	}
	cycles := slices.Sorted(maps.Keys(s.cycles))
	for i := 1; i < len(cycles) && v.Over == OverRemoteRead; i++ {
		if of := s.cycles[cycles[i-1]]; len(of) > 0 && of[len(of)-1].Bits != model.StaleNaN {
			c.note(&c.out.Missing, 1, "%s: cycle %d ends without a stale marker", what, cycles[i-1])
		}
	}
}
