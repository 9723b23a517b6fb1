package fleet

import (
	"fmt"
	"slices"
	"time"

	"github.com/shaledb/shale/internal/load/pace"
	"github.com/shaledb/shale/internal/load/random"
	"github.com/shaledb/shale/internal/load/values"
	"github.com/shaledb/shale/internal/model"
)

// Churn says how the series of a fleet come and go, and when their values change. In the zero value only the
// values change, in every round.
type Churn struct {
	// ValueInterval is how long a value stays; 0: until the next sample.
	ValueInterval time.Duration `json:"value_interval,omitempty"`
	// SeriesInterval is the length of a cycle. With each, every series of a target ends and another one
	// begins, which differs by its label cycle_id; 0: never.
	SeriesInterval time.Duration `json:"series_interval,omitempty"`
	// Relabel spreads the beginning of a cycle over the targets.
	Relabel Spread `json:"relabel_jitter,omitzero"`
	// Rollout is the time from the first samples of one target to those of the next.
	Rollout time.Duration `json:"rollout_stagger,omitempty"`
	// Jitter bounds the delay of a scrape.
	Jitter time.Duration `json:"jitter,omitempty"`
	// StaleMarkers ends each series of a past cycle with a marker, as a scraping Prometheus does.
	StaleMarkers bool `json:"stale_markers,omitempty"`
}

func (c *Churn) check(targets int) error {
	switch {
	case c.ValueInterval < 0 || c.SeriesInterval < 0 || c.Rollout < 0 || c.Jitter < 0 || c.Relabel.By < 0 || (c.Relabel.By == 0) != (c.Relabel.How == SpreadNone):
		return fmt.Errorf("%w: load: intervals, staggers and jitters must not be negative, and a spread has a time", model.ErrInvalid)
	case c.SeriesInterval > 0 && c.SeriesInterval < time.Second:
		return fmt.Errorf("%w: load: series interval %v: want at least 1s", model.ErrInvalid, c.SeriesInterval)
	case c.Jitter%time.Millisecond != 0:
		return fmt.Errorf("%w: load: jitter %v: want whole milliseconds", model.ErrInvalid, c.Jitter)
	case !staggers(targets, c.Rollout) || c.Relabel.How == SpreadStagger && !staggers(targets, c.Relabel.By):
		return fmt.Errorf("%w: load: staggered over so many targets, the last one would be centuries late", model.ErrInvalid)
	}
	return nil
}

// Spread is how a moment differs from target to target: not at all, by a random time, or in turn.
type Spread struct {
	How SpreadKind    `json:"how"`
	By  time.Duration `json:"by"`
}

// SpreadKind is a kind of spread.
type SpreadKind uint8

// The kinds of spread. A target's moment is later by nothing, by a random time below By, or by its number
// times By.
const (
	SpreadNone SpreadKind = iota
	SpreadUniform
	SpreadStagger
)

var spreadNames = [...]string{"none", "uniform", "stagger"}

// MarshalText returns the name of the kind.
func (k SpreadKind) MarshalText() ([]byte, error) { return []byte(spreadNames[k]), nil }

// UnmarshalText reads the name of a kind. Its error is of class [model.ErrInvalid].
func (k *SpreadKind) UnmarshalText(text []byte) error {
	i := slices.Index(spreadNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("%w: spread %q: want none, uniform or stagger", model.ErrInvalid, text)
	}
	*k = SpreadKind(i)
	return nil
}

// Course says when each target of a fleet begins, is sampled and is relabelled. It is a pure function of its
// fields.
type Course struct {
	Churn
	pace.Timeline
	seed uint64
}

func (f *Fleet) Course(t pace.Timeline) Course { return Course{f.Churn, t, f.Seed} }

// First returns the round of the first samples of a target.
func (c *Course) First(target int) int {
	if c.Rollout == 0 {
		return 0
	}
	return roundsIn(int64(target)*int64(c.Rollout), c.Step)
}

func roundsIn(a, b int64) int { return int((a + b - 1) / b) }

// shift returns by how much the cycles of a target begin later than those of the load.
func (c *Course) shift(target int) int64 {
	switch c.Relabel.How {
	case SpreadUniform:
		return int64(random.Draw(c.seed^random.SaltRelabel, uint64(target), 0) % uint64(c.Relabel.By))
	case SpreadStagger:
		return int64(target) * int64(c.Relabel.By)
	}
	return 0
}

// Cycle returns the cycle that a target is in. The first one is longer by the target's shift.
func (c *Course) Cycle(target int, ns int64) int {
	if c.SeriesInterval == 0 {
		return 0
	}
	return int(max(0, (ns-c.Start-c.shift(target))/int64(c.SeriesInterval)))
}

// Moment is what the samples of a target have in common in one round, or in one scrape.
type Moment struct {
	Ns    int64 // that the samples bear
	Cycle int
	// Born is when the series of the cycle began, and from when ticks are counted, in Unix nanoseconds.
	Born, From int64
	values.Instant
}

// Moment returns the moment of a round. scrape is a number from [Fleet.Scrape]; each scrape has its own
// jitter.
func (c *Course) Moment(target int, scrape int64, round int) Moment {
	m := c.MomentAt(target, c.At(round))
	m.Ns += c.ScrapeDelay(scrape, round)
	if c.ValueInterval == 0 {
		m.Tick = uint64(round)
		if m.Fresh {
			m.Tick -= uint64(max(0, roundsIn(m.Born-c.Start, c.Step)))
		}
	}
	return m
}

// MomentAt returns the moment at a time, as if a target were sampled then. Its tick is set only if values
// have an interval.
func (c *Course) MomentAt(target int, ns int64) Moment {
	m := Moment{Ns: ns, Cycle: c.Cycle(target, ns), Born: c.Start + int64(target)*int64(c.Rollout), Instant: values.Instant{Seed: c.seed}}
	if m.Cycle > 0 {
		m.Born = max(m.Born, c.Start+c.shift(target)+int64(m.Cycle)*int64(c.SeriesInterval))
		m.Seed ^= random.Spread64(uint64(m.Cycle) * random.SaltCycle)
	}
	m.Fresh = m.Born > c.Start
	m.From = m.Born
	if !m.Fresh {
		m.From, m.Born = c.Start, m.Born-int64(oldCounters)
	}
	if c.ValueInterval > 0 {
		m.Tick = uint64(max(0, (ns-m.From)/int64(c.ValueInterval)))
	}
	return m
}

// oldCounters is the age of counters that exist when the load starts.
const oldCounters = time.Hour

// ScrapeDelay returns the delay of the scrape of a round: less than Jitter, in whole milliseconds.
func (c *Course) ScrapeDelay(scrape int64, round int) int64 {
	if c.Jitter == 0 {
		return 0
	}
	late := random.Draw(c.seed^random.SaltJitter, uint64(scrape), uint64(round)) % uint64(c.Jitter/time.Millisecond)
	return int64(late) * int64(time.Millisecond)
}

// Ended returns the cycle whose series vanish in a round, if there is one.
func (c *Course) Ended(target, round int) (cycle int, ok bool) {
	if !c.StaleMarkers || c.SeriesInterval == 0 || round <= c.First(target) {
		return 0, false
	}
	cycle = c.Cycle(target, c.At(round-1))
	return cycle, cycle != c.Cycle(target, c.At(round))
}

// StartMs returns the start time of counters in Unix milliseconds, or 0 (unknown) if it were before 1970.
func (m *Moment) StartMs() int64 { return max(0, m.Born/int64(time.Millisecond)) }

// Next returns when the values or series of a target change next.
func (c *Course) Next(target int, m *Moment) int64 {
	next := m.From + int64(m.Tick+1)*int64(c.ValueInterval)
	if c.SeriesInterval > 0 {
		next = min(next, c.Start+c.shift(target)+int64(m.Cycle+1)*int64(c.SeriesInterval))
	}
	return next
}

// Exposed is the course of a fleet that is scraped. The values of a target do not depend on when it starts.
func (f *Fleet) Exposed(epoch int64) Course {
	c := f.Course(pace.Timeline{Start: epoch, Step: int64(f.Churn.ValueInterval)})
	c.Rollout = 0
	return c
}

// CheckScraped returns an error of class [model.ErrInvalid] unless the fleet can be scraped.
func (f *Fleet) CheckScraped() error {
	switch {
	case f.Churn.ValueInterval <= 0:
		return fmt.Errorf("%w: load: the value interval of targets must be positive", model.ErrInvalid)
	case f.Churn.Jitter > 0 || f.Churn.StaleMarkers || f.ScraperCount() > 1 || f.TenantCount() > 1:
		return fmt.Errorf("%w: load: jitter, stale markers, scrapers and tenants are set on the scraper, not on the target", model.ErrInvalid)
	}
	return f.Check()
}
