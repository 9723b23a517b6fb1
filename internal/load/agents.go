package load

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/shaledb/shale/internal/model"
)

// Agents is the shape of a Graphite load: agents that flush the same number of metrics, under the names
//
//	<prefix>.agent.<id>.metrics.<n>
//
// Series are numbered agent by agent. Agent i sends over connection i modulo Connections, always in the same order.
type Agents struct {
	Seed        uint64     `json:"seed"`
	Prefix      string     `json:"prefix"`
	Agents      int        `json:"agents"`
	Metrics     int        `json:"metrics"` // per agent
	Connections int        `json:"connections"`
	UDP         bool       `json:"udp,omitempty"`
	Value       ValueModel `json:"value"`
}

// Check returns an error of class [model.ErrInvalid] unless the shape can be sent.
func (a *Agents) Check() error {
	switch {
	case a.Agents < 1 || a.Metrics < 1 || a.Agents > maxSeries/a.Metrics:
		return fmt.Errorf("%w: load: agents and metrics must each be at least 1, and their product at most %d", model.ErrInvalid, maxSeries)
	case a.Connections < 1 || a.Connections > a.Agents:
		return fmt.Errorf("%w: load: %d connections: want 1 to the number of agents, %d", model.ErrInvalid, a.Connections, a.Agents)
	case !validPath(a.Prefix):
		return fmt.Errorf("%w: load: prefix %q: want letters, digits, '_', '-' and single dots", model.ErrInvalid, a.Prefix)
	}
	return nil
}

// validPath is narrower than Graphite's rule, so that names need no escaping but that of dots in selectors.
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

func (a *Agents) appendParent(dst []byte, agent int) []byte {
	dst = append(dst, a.Prefix...)
	dst = append(dst, ".agent."...)
	dst = strconv.AppendInt(dst, int64(agent), 10)
	return append(dst, ".metrics."...)
}

// Path returns the name of a series.
func (a *Agents) Path(g int64) string {
	return string(strconv.AppendInt(a.appendParent(nil, int(g/int64(a.Metrics))), g%int64(a.Metrics), 10))
}

// Bits returns the value of a sample.
func (a *Agents) Bits(g int64, round int) uint64 {
	return a.Value.Bits(a.Seed, uint64(g), uint64(round))
}

// perRound returns how many points a connection sends in a round.
func (a *Agents) perRound(connection int) uint64 {
	return uint64((a.Agents-connection+a.Connections-1)/a.Connections) * uint64(a.Metrics)
}

// position returns the connection that a sample is sent over and how many points go before it there.
func (a *Agents) position(g int64, round int) (connection int, at uint64) {
	agent, metric := int(g/int64(a.Metrics)), uint64(g%int64(a.Metrics))
	connection = agent % a.Connections
	return connection, uint64(round)*a.perRound(connection) + uint64(agent/a.Connections)*uint64(a.Metrics) + metric
}

// lines makes the lines of one connection in their order.
type lines struct {
	agents     *Agents
	connection int
	timeline   Timeline

	at     uint64 // points made so far
	round  int
	stamp  []byte // " <seconds>\n" of the round
	agent  int
	metric int
	parent []byte
}

func newLines(a *Agents, connection int, t Timeline) *lines {
	l := &lines{agents: a, connection: connection, timeline: t, agent: connection}
	l.restamp()
	l.parent = a.appendParent(nil, l.agent)
	return l
}

func (l *lines) restamp() {
	l.stamp = append(l.stamp[:0], ' ')
	l.stamp = strconv.AppendInt(l.stamp, l.timeline.At(l.round)/1e9, 10)
	l.stamp = append(l.stamp, '\n')
}

// fill appends lines until there are max, or full bytes, or the round is over, or, if whole is not set, the agent is.
// No line goes beyond full, unless it is the only one. It returns how many it made.
func (l *lines) fill(dst []byte, max, full int, whole bool) ([]byte, int) {
	a, n := l.agents, 0
	base := uint64(l.agent) * uint64(a.Metrics)
	for n < max {
		begin := len(dst)
		dst = append(dst, l.parent...)
		dst = strconv.AppendInt(dst, int64(l.metric), 10)
		dst = append(dst, ' ')
		dst = a.Value.AppendText(dst, a.Seed, base+uint64(l.metric), uint64(l.round))
		dst = append(dst, l.stamp...)
		if len(dst) > full && n > 0 {
			return dst[:begin], n
		}
		n++
		l.at++
		if l.metric++; l.metric < a.Metrics {
			continue
		}
		l.metric = 0
		if l.agent += a.Connections; l.agent >= a.Agents {
			l.agent = l.connection
			l.round++
			l.restamp()
			whole = false
		}
		base = uint64(l.agent) * uint64(a.Metrics)
		l.parent = a.appendParent(l.parent[:0], l.agent)
		if !whole {
			break
		}
	}
	return dst, n
}

// countLines returns the number of whole lines in b.
func countLines(b []byte) int { return bytes.Count(b, []byte{'\n'}) }
