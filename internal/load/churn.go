package load

import (
	"fmt"
	"slices"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// Churn says how the series of a fleet come and go, and when their values move. The zero value is a fleet in which
// nothing but values changes, and those in every round.
type Churn struct {
	// ValueInterval is how long a value stays; 0: until the next sample.
	ValueInterval time.Duration `json:"value_interval,omitempty"`
	// SeriesInterval is the length of a cycle. With each, every series of a target ends and another one begins, which
	// differs by its label cycle_id; 0: never.
	SeriesInterval time.Duration `json:"series_interval,omitempty"`
	// Relabel keeps the targets from beginning a cycle all at once.
	Relabel Spread `json:"relabel_jitter,omitzero"`
	// Rollout is by how much later each target has its first samples than the one before.
	Rollout time.Duration `json:"rollout_stagger,omitempty"`
	// Jitter bounds by how much the time of a scrape is later than it should be.
	Jitter time.Duration `json:"jitter,omitempty"`
	// StaleMarkers ends each series of a cycle that is over with a marker, as a Prometheus does that scrapes.
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

// The kinds of spread. A target's moment is later by nothing, by a random time below By, or by its number times By.
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

// Salts keep what is drawn for one purpose from what is drawn for another.
const (
	saltCycle    = 0xa0761d6478bd642f
	saltRelabel  = 0xe7037ed1a0b428db
	saltJitter   = 0x8ebc6af09c88c6e3
	saltLate     = 0x589965cc75374cc3
	saltTwice    = 0x1d8e4e27c47d124f
	saltExemplar = 0xeb44accab455d165
	saltShape    = 0x2d358dccaa6c78a5
	saltSpawn    = 0x9e6c63d0676a9a99
)

// course is what the targets of a fleet go through: when each begins, is sampled and is relabelled. It is a pure
// function of its fields.
type course struct {
	Churn
	Timeline
	seed uint64
}

func (f *Fleet) course(t Timeline) course { return course{f.Churn, t, f.Seed} }

// first returns the round of the first samples of a target.
func (c *course) first(target int) int {
	if c.Rollout == 0 {
		return 0
	}
	return ceilDiv(int64(target)*int64(c.Rollout), c.Step)
}

func ceilDiv(a, b int64) int { return int((a + b - 1) / b) }

// shift returns by how much the cycles of a target begin later than those of the load.
func (c *course) shift(target int) int64 {
	switch c.Relabel.How {
	case SpreadUniform:
		return int64(draw(c.seed^saltRelabel, uint64(target), 0) % uint64(c.Relabel.By))
	case SpreadStagger:
		return int64(target) * int64(c.Relabel.By)
	}
	return 0
}

// cycle returns the cycle that a target is in. The first one is longer by the target's shift.
func (c *course) cycle(target int, ns int64) int {
	if c.SeriesInterval == 0 {
		return 0
	}
	return int(max(0, (ns-c.Start-c.shift(target))/int64(c.SeriesInterval)))
}

// moment is what the samples of a target have in common in one round, or in one scrape.
type moment struct {
	ns    int64 // that the samples bear
	cycle int
	// born is when the series of the cycle began, and from when ticks are counted, in Unix nanoseconds.
	born, from int64
	instant
}

// moment returns that of a round. The scrape is that of Fleet.scrape: each has a jitter of its own.
func (c *course) moment(target int, scrape int64, round int) moment {
	m := c.at(target, c.At(round))
	m.ns += c.jitter(scrape, round)
	if c.ValueInterval == 0 {
		m.tick = uint64(round)
		if m.fresh {
			m.tick -= uint64(max(0, ceilDiv(m.born-c.Start, c.Step)))
		}
	}
	return m
}

// at returns the moment at a time, as if a target were sampled then. Its tick is set only if values have an interval.
func (c *course) at(target int, ns int64) moment {
	m := moment{ns: ns, cycle: c.cycle(target, ns), born: c.Start + int64(target)*int64(c.Rollout), instant: instant{seed: c.seed}}
	if m.cycle > 0 {
		m.born = max(m.born, c.Start+c.shift(target)+int64(m.cycle)*int64(c.SeriesInterval))
		m.seed ^= spread(uint64(m.cycle) * saltCycle)
	}
	m.fresh = m.born > c.Start
	m.from = m.born
	if !m.fresh {
		m.from, m.born = c.Start, m.born-int64(oldCounters)
	}
	if c.ValueInterval > 0 {
		m.tick = uint64(max(0, (ns-m.from)/int64(c.ValueInterval)))
	}
	return m
}

// oldCounters is how long counters that are there from the start have counted already.
const oldCounters = time.Hour

// jitter returns by how much the scrape of a round is late: less than Jitter, in whole milliseconds.
func (c *course) jitter(scrape int64, round int) int64 {
	if c.Jitter == 0 {
		return 0
	}
	late := draw(c.seed^saltJitter, uint64(scrape), uint64(round)) % uint64(c.Jitter/time.Millisecond)
	return int64(late) * int64(time.Millisecond)
}

// ended returns the cycle whose series vanish in a round, if there is one.
func (c *course) ended(target, round int) (cycle int, ok bool) {
	if !c.StaleMarkers || c.SeriesInterval == 0 || round <= c.first(target) {
		return 0, false
	}
	cycle = c.cycle(target, c.At(round-1))
	return cycle, cycle != c.cycle(target, c.At(round))
}

// startMs returns the start time of counters in Unix milliseconds; 0, which says nothing, if it were before 1970.
func (m *moment) startMs() int64 { return max(0, m.born/int64(time.Millisecond)) }
