package fleet

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/load/pace"
	"github.com/shaledb/shale/internal/load/random"
	"github.com/shaledb/shale/internal/load/values"
	"github.com/shaledb/shale/internal/model"
)

// Agents is the shape of a Graphite load: agents that flush the same number of metrics, under the names
//
//	<prefix>.agent.<id>.metrics.<n>
//	<prefix>.metrics.<n>;agent=<id>;region=eu-north-1    with tags
//
// Series are numbered agent by agent. Agent i sends over connection i modulo Connections, always in the same
// order.
type Agents struct {
	Seed        uint64            `json:"seed"`
	Prefix      string            `json:"prefix"`
	Agents      int               `json:"agents"`
	Metrics     int               `json:"metrics"` // per agent
	Connections int               `json:"connections"`
	Protocol    GraphiteProtocol  `json:"protocol,omitempty"`
	UDP         bool              `json:"udp,omitempty"`
	Value       values.ValueModel `json:"value"`
	Spawn       Spawn             `json:"spawn,omitzero"`
	Disorder    Disorder          `json:"disorder,omitzero"`
}

// GraphiteProtocol is how points are written.
type GraphiteProtocol uint8

// The protocols.
const (
	Plain  GraphiteProtocol = iota // lines
	Tagged                         // lines, whose names have tags
	Pickle                         // messages of Python's pickle
)

var graphiteProtocols = [...]string{"plain", "tagged", "pickle"}

// String returns the name of the protocol.
func (p GraphiteProtocol) String() string { return graphiteProtocols[p] }

// MarshalText returns the name of the protocol.
func (p GraphiteProtocol) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads the name of a protocol. Its error is of class [model.ErrInvalid].
func (p *GraphiteProtocol) UnmarshalText(text []byte) error {
	i := slices.Index(graphiteProtocols[:], string(text))
	if i < 0 {
		return fmt.Errorf("%w: protocol %q: want plain, tagged or pickle", model.ErrInvalid, text)
	}
	*p = GraphiteProtocol(i)
	return nil
}

// Port is where servers usually listen for the protocol.
func (p GraphiteProtocol) Port() int {
	if p == Pickle {
		return 2004
	}
	return 2003
}

// Check returns an error of class [model.ErrInvalid] unless the shape can be sent.
func (a *Agents) Check() error {
	switch {
	case a.Agents < 1 || a.Metrics < 1 || a.Agents > MaxSeries/a.Metrics:
		return fmt.Errorf("%w: load: agents and metrics must each be at least 1, and their product at most %d", model.ErrInvalid, int64(MaxSeries))
	case a.Connections < 1 || a.Connections > min(a.Agents, maxConnections):
		return fmt.Errorf("%w: load: %d connections: want 1 to %d", model.ErrInvalid, a.Connections, min(a.Agents, maxConnections))
	case !validPath(a.Prefix):
		return fmt.Errorf("%w: load: prefix %q: want letters, digits, '_', '-' and single dots", model.ErrInvalid, a.Prefix)
	case a.Value.Histogram():
		return fmt.Errorf("%w: load: Graphite has no histograms", model.ErrInvalid)
	case a.UDP && a.Protocol == Pickle:
		return fmt.Errorf("%w: load: pickle needs connections, not datagrams", model.ErrInvalid)
	}
	if err := a.Disorder.Check(); err != nil {
		return err
	}
	return a.Spawn.check(a)
}

// maxConnections is what one process may have open from one address.
const maxConnections = 1 << 16

// validPath is narrower than Graphite's rule, so that only the dots of names need escaping in selectors.
func validPath(s string) bool {
	dot := true
	for i := range len(s) {
		c := s[i]
		if c == '.' && dot {
			return false
		}
		if dot = c == '.'; dot {
			continue
		}
		if !(c == '_' || c == '-' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9') {
			return false
		}
	}
	return !dot
}

// Total returns the number of series.
func (a *Agents) Total() int64 { return int64(a.Agents) * int64(a.Metrics) }

// tagRegion is a tag that all series share.
const tagRegion = "eu-north-1"

// AppendBefore and AppendAfter append the parts of an agent's names before and after the number of a metric.
func (a *Agents) AppendBefore(dst []byte, agent int) []byte {
	dst = append(dst, a.Prefix...)
	if a.Protocol != Tagged {
		dst = strconv.AppendInt(append(dst, ".agent."...), int64(agent), 10)
	}
	return append(dst, ".metrics."...)
}

func (a *Agents) AppendAfter(dst []byte, agent int) []byte {
	if a.Protocol == Tagged {
		dst = strconv.AppendInt(append(dst, ";agent="...), int64(agent), 10)
		dst = append(dst, ";region="+tagRegion...)
	}
	return dst
}

// Path returns the name of a series.
func (a *Agents) Path(g int64) string {
	agent := int(g / int64(a.Metrics))
	return string(a.AppendAfter(strconv.AppendInt(a.AppendBefore(nil, agent), g%int64(a.Metrics), 10), agent))
}

// LabelsOf returns the labels of a series by name. It has one cycle.
func (a *Agents) LabelsOf(g int64, _ int) map[string]string {
	name, _, _ := strings.Cut(a.Path(g), ";")
	if a.Protocol != Tagged {
		return map[string]string{model.NameLabel: name}
	}
	return map[string]string{model.NameLabel: name, "agent": strconv.FormatInt(g/int64(a.Metrics), 10), "region": tagRegion}
}

func (a *Agents) Matchers(g int64) []Matcher {
	name, _, _ := strings.Cut(a.Path(g), ";")
	ls := []Matcher{{model.NameLabel, name}}
	if a.Protocol == Tagged {
		ls = append(ls, Matcher{"agent", strconv.FormatInt(g/int64(a.Metrics), 10)})
	}
	return ls
}

// Selector returns a PromQL selector that only this series satisfies.
func (a *Agents) Selector(g int64) string { return SelectorOf(a.Matchers(g)) }

// At returns the instant of all series in a round.
func (a *Agents) At(round int) values.Instant {
	return values.Instant{Seed: a.Seed, Tick: uint64(round)}
}

// Bits returns the value of a sample.
func (a *Agents) Bits(g int64, round int) uint64 {
	at := a.At(round)
	return a.Value.Bits(&at, uint64(g))
}

// AgentsOf returns how many agents a connection has.
func (a *Agents) AgentsOf(connection int) int {
	return (a.Agents - connection + a.Connections - 1) / a.Connections
}

// Position returns the connection that a sample is first sent over and how many points go before it there.
// The round must not be before the agent's first.
func (a *Agents) Position(t pace.Timeline, g int64, round int) (connection int, at uint64) {
	agent, metric := int(g/int64(a.Metrics)), int(g%int64(a.Metrics))
	connection = agent % a.Connections
	f := a.Flushes(t, agent)
	flush, slot := f.Sent(agent, metric, round-a.First(agent))
	// All agents of one connection start in the same round: agents that are launched one by one have a
	// connection each.
	at = f.Before(flush)*uint64(a.AgentsOf(connection)) + uint64(agent/a.Connections)*uint64(f.Size(flush)) + uint64(slot)
	return connection, at
}

// Spawn launches agents one by one, as haggar does: each has a connection of its own, and flushes for the
// first time one flush interval after its launch. The zero value launches all of them at once; then they take
// turns within the interval.
type Spawn struct {
	// Interval is the time from one launch to the next, give or take Jitter.
	Interval time.Duration `json:"interval"`
	Jitter   time.Duration `json:"jitter"`
	Flush    time.Duration `json:"flush"`
}

func (s *Spawn) check(a *Agents) error {
	switch {
	case s.Interval < 0 || s.Jitter < 0 || s.Jitter > s.Interval:
		return fmt.Errorf("%w: load: spawn interval and jitter must not be negative, and the jitter not above the interval", model.ErrInvalid)
	case s.Interval > 0 && (s.Flush <= 0 || a.Connections != a.Agents):
		return fmt.Errorf("%w: load: agents that are launched one by one need a flush interval and a connection each", model.ErrInvalid)
	case !staggers(a.Agents, s.Interval):
		return fmt.Errorf("%w: load: the last agent would be launched centuries late", model.ErrInvalid)
	}
	return nil
}

// Launch returns when an agent is launched, counted from the beginning of the load. Agents are launched in
// order: if jitter would put one before an earlier one, both are launched together. Only the two agents
// before it matter, because jitter is never longer than the interval.
func (a *Agents) Launch(agent int) time.Duration {
	s, at := a.Spawn, time.Duration(0)
	for i := max(0, agent-2); i <= agent; i++ {
		off := time.Duration(0)
		if s.Jitter > 0 {
			off = time.Duration(random.Draw(a.Seed^random.SaltSpawn, uint64(i), 0)%uint64(2*s.Jitter+1)) - s.Jitter
		}
		at = max(at, time.Duration(i)*s.Interval+off)
	}
	return at
}

// First returns the round of an agent's first flush.
func (a *Agents) First(agent int) int {
	if a.Spawn.Interval == 0 {
		return 0
	}
	return int(a.Launch(agent)/a.Spawn.Flush) + 1
}

// Phase returns when in its interval an agent flushes; it is less than Flush.
func (a *Agents) Phase(agent int) time.Duration {
	if a.Spawn.Interval == 0 {
		return 0
	}
	return a.Launch(agent) % a.Spawn.Flush
}

// Stamp returns the timestamp of an agent's points of a round: whole seconds, as Unix nanoseconds.
func (a *Agents) Stamp(t pace.Timeline, agent, round int) int64 {
	ns := t.At(round)
	if a.Spawn.Interval > 0 {
		ns += int64(float64(a.Phase(agent)) / float64(a.Spawn.Flush) * float64(t.Step))
	}
	return ns / 1e9 * 1e9
}
