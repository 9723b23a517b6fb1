package load

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// Scraped verifies what came of scrapes of a [Target]. It needs no state file: what a target showed at a time is a pure
// function of its shape.
type Scraped struct {
	Reader Reader
	Tenant string
	Fleet  Fleet
	Epoch  time.Time
	// Series is how many series are drawn and compared, Draw chooses them.
	Series int64
	Draw   uint64
	Over   Over
	// From and To bound the times that are read.
	From, To time.Time
	// Every is how often a scraper comes: longer gaps are missing samples. 0: nobody knows.
	Every time.Duration
	// Late bounds how long after the time of a scrape the target may have been asked: the scraper's timeout.
	Late        time.Duration
	Concurrency int
	// Done, if set, is called for each series that has been compared.
	Done func()
}

// Run reads back and compares. Its error says that it could not begin or was cut short.
func (v *Scraped) Run(ctx context.Context) (*Verification, error) {
	f := &v.Fleet
	if err := (&Target{Fleet: *f}).Check(); err != nil {
		return nil, err
	}
	if !v.From.Before(v.To) || v.Every < 0 || v.Late < 0 {
		return nil, fmt.Errorf("%w: load: verify: times from %v to %v, every %v: want them in order and not negative", model.ErrInvalid, v.From, v.To, v.Every)
	}
	if v.Over == OverAuto {
		v.Over = OverRemoteRead
	}
	c := &checker{Verifier: &Verifier{
		Reader: Reader{URL: v.Reader.URL, Client: v.Reader.Client, Patience: v.Reader.Patience}, Tenant: v.Tenant, Series: v.Series, Draw: v.Draw, Over: v.Over, Chunk: 1, Concurrency: v.Concurrency, Done: v.Done,
		State: &State{Header: Header{RemoteWrite: f}},
	}}
	if err := c.check(); err != nil {
		return nil, err
	}
	course := f.exposed(v.Epoch.UnixNano())
	return c.over(ctx, f.Total(), func(g int64) { v.series(ctx, c, &course, g) }, nil)
}

// seenBy is what one scraper has written of a series, which has other labels beside those of the target then.
type seenBy struct {
	cycles  map[int][]sample
	samples []int64 // times of all that are no markers
}

func (v *Scraped) series(ctx context.Context, c *checker, course *course, g int64) {
	f := &v.Fleet
	ls := f.selectedBy(g)
	selector := selectorOf(ls)
	var curves []curve
	if c.ask(func() (err error) {
		curves, err = c.read(ctx, g, ls, v.From.UnixMilli(), v.To.UnixMilli())
		return err
	}) != nil {
		return
	}
	scrapers := map[string]*seenBy{}
	for _, got := range curves {
		cycle, ok := f.cycleOf(got.Metric)
		want, others := f.LabelsOf(g, cycle), maps.Clone(got.Metric)
		for name, value := range want {
			ok = ok && got.Metric[name] == value
			delete(others, name)
		}
		id := fmt.Sprint(others)
		if scrapers[id] == nil {
			scrapers[id] = &seenBy{cycles: map[int][]sample{}}
		}
		if s := scrapers[id]; !ok || s.cycles[cycle] != nil {
			c.note(&c.out.Wrong, 1, "%s: labels %v, want %v", selector, got.Metric, want)
		} else {
			s.cycles[cycle] = got.Values
			v.curve(c, course, s, g, cycle)
		}
	}
	if len(scrapers) == 0 {
		c.note(&c.out.Missing, 1, "%s: nothing is there", selector)
	}
	for id, s := range scrapers {
		v.gaps(c, s, selector+" of "+id)
	}
	c.add(&c.out.Series, 1)
}

// curve compares the samples of one cycle.
func (v *Scraped) curve(c *checker, course *course, s *seenBy, g int64, cycle int) {
	p := v.Fleet.place(g)
	var equal, markers int64
	for _, got := range s.cycles[cycle] {
		if got.bits == model.StaleNaN {
			markers++
			continue
		}
		s.samples = append(s.samples, got.ms)
		if why := v.differs(course, p, cycle, got); why != "" {
			c.note(&c.out.Wrong, 1, "%s: at %d ms, cycle %d: %s", v.Fleet.Selector(g), got.ms, cycle, why)
		} else {
			equal++
		}
	}
	c.add(&c.out.Compared, equal)
	c.add(&c.out.Markers, markers)
}

// differs says in what a sample is none of those that the target showed from its time on, until the scraper gave up.
func (v *Scraped) differs(course *course, p place, cycle int, got sample) string {
	f, id, why := &v.Fleet, v.Fleet.identity(p), "the target was not in this cycle"
	for ns := got.ms * 1e6; ns <= got.ms*1e6+int64(v.Late); {
		m := course.at(p.target, ns)
		if m.cycle == cycle {
			want := value{}
			if f.Value.Histogram() {
				want.histogram = &native{}
				want.histogram.fill(f.Value, f.gaugeHistogram(p.metric), &m.instant, id)
			} else {
				want.bits = f.Value.Bits(&m.instant, id)
			}
			if why = want.differs(got); why == "" {
				return ""
			}
		}
		ns = course.next(p.target, &m)
	}
	return why
}

// next returns when a target shows something else.
func (c *course) next(target int, m *moment) int64 {
	next := m.from + int64(m.tick+1)*int64(c.ValueInterval)
	if c.SeriesInterval > 0 {
		next = min(next, c.Start+c.shift(target)+int64(m.cycle+1)*int64(c.SeriesInterval))
	}
	return next
}

// gaps notes where samples are missing, and cycles that end without a marker.
func (v *Scraped) gaps(c *checker, s *seenBy, what string) {
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
		if of := s.cycles[cycles[i-1]]; len(of) > 0 && of[len(of)-1].bits != model.StaleNaN {
			c.note(&c.out.Missing, 1, "%s: cycle %d ends without a stale marker", what, cycles[i-1])
		}
	}
}
