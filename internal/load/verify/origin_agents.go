package verify

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/load/fleet"
	"github.com/shaledb/shale/internal/load/statefile"
)

// agentsOrigin knows which points of a Graphite load were written, and how many the server has counted.
type agentsOrigin struct {
	*fleet.Agents
	state *statefile.State
	// intact is set if nothing happened that could lose a written point.
	intact bool
	// prefix is how many points of the only connection must be stored although points may have been lost.
	prefix uint64
	// sentBefore is how many points must be stored in total, if the caller knows better than the server's
	// counter.
	sentBefore uint64
	last       int
}

func newAgentsOrigin(s *statefile.State, sentBefore uint64) *agentsOrigin {
	o := &agentsOrigin{Agents: s.Graphite, state: s, sentBefore: sentBefore}
	o.intact = s.Ended && !s.Graphite.UDP && !s.Trail.Broken && !s.Trail.Died() && sentBefore == 0
	if s.Graphite.Connections == 1 && !s.Graphite.UDP {
		o.prefix = sentBefore
		if sentBefore == 0 {
			o.prefix = s.Trail.Lives().First
		}
	}
	for i, sent := range s.Trail.Sent {
		f, agents := o.Flushes(s.Timeline, i), uint64(o.AgentsOf(i))
		o.last = max(o.last, o.First(i)+f.Reached((sent+agents-1)/agents))
	}
	if !s.Ended {
		o.last = int(s.Trail.Kept()/uint64(s.Graphite.Total())) + o.First(o.Agents.Agents-1) + connectionsApart
	}
	return o
}

// connectionsApart is how many rounds one connection may be ahead of the average of all connections. It
// bounds the rounds that are read when the sending process was killed.
const connectionsApart = 16

func (o *agentsOrigin) rounds() int                                    { return o.last }
func (o *agentsOrigin) CycleOf(map[string]string) (cycle int, ok bool) { return 0, true }
func (o *agentsOrigin) cycle(int64, int) int                           { return 0 }
func (o *agentsOrigin) ended(int64, int) (int, certainty)              { return 0, never }

func (o *agentsOrigin) agent(g int64) int { return int(g / int64(o.Metrics)) }

func (o *agentsOrigin) ms(g int64, round int) int64 {
	return o.Stamp(o.state.Timeline, o.agent(g), round) / int64(time.Millisecond)
}

func (o *agentsOrigin) roundAt(g, ms int64) (round int, ok bool) {
	d := ms*int64(time.Millisecond) - o.state.Timeline.Start
	if d < 0 {
		return 0, false
	}
	round = int(d / o.state.Timeline.Step)
	return round, o.ms(g, round) == ms
}

func (o *agentsOrigin) value(g int64, round int, into *value) { into.bits = o.Bits(g, round) }

func (o *agentsOrigin) certainty(g int64, round int) certainty {
	if round < o.First(o.agent(g)) {
		return never
	}
	c, at := o.Position(o.state.Timeline, g, round)
	switch {
	case o.state.Ended && at >= o.state.Trail.Sent[c]:
		return never
	case o.intact || at < o.prefix:
		return surely
	}
	return perhaps
}

// counts asks for a few agents at a time, and for some of the rounds if one agent alone is too much. An agent
// has no lower bound, because the server's counter does not tell agents apart.
//
// count_over_time does not work: it drops the name, which alone tells these series apart, and Prometheus
// refuses a result with duplicate labels. last_over_time keeps the name. Over the milliseconds of one round
// it returns the points of exactly that round: each series has one, between the beginning of the round and
// the next one.
func (o *agentsOrigin) counts(chunk int64, send func(tallyQuery)) {
	rounds := o.rounds()
	perQuery := int(min(int64(rounds), maxRoundsPerQuery, max(1, chunk/int64(o.Metrics))))
	if rounds == 0 {
		return
	}
	step := o.state.Timeline.Step / int64(time.Millisecond)
	agents := int(min(maxNamesPerCount, int64(o.Agents.Agents), max(1, min(chunk/int64(perQuery), maxSeriesPerCount)/int64(o.Metrics))))
	for from := 0; from < o.Agents.Agents; from += agents {
		to := min(from+agents, o.Agents.Agents)
		for first := 0; first < rounds; first += perQuery {
			end := min(first+perQuery, rounds)
			q := tallyQuery{
				from: o.state.Timeline.Ms(first) + step - 1, ms: o.state.Timeline.Ms(end) - 1, step: step,
				expr: fmt.Sprintf("count(last_over_time(%s[%dms]))", o.matching(from, to), step),
			}
			q.what = fmt.Sprintf("agents %d to %d, rounds %d to %d", from, to-1, first, end-1)
			for agent := from; agent < to; agent++ {
				for round := first; round < end; round++ {
					q.most += o.most(agent, round)
				}
			}
			send(q)
		}
	}
}

// matching selects the series of the agents [from, to).
func (o *agentsOrigin) matching(from, to int) string {
	ids := "[0-9]+"
	if to-from < o.Agents.Agents {
		var sb strings.Builder
		for agent := from; agent < to; agent++ {
			sb.WriteString("|" + strconv.Itoa(agent))
		}
		ids = "(" + sb.String()[1:] + ")"
	}
	prefix := strings.ReplaceAll(o.Prefix, ".", `\.`)
	if o.Protocol == fleet.Tagged {
		return fmt.Sprintf("{__name__=~%q,agent=~%q}", prefix+`\.metrics\.[0-9]+`, ids)
	}
	return fmt.Sprintf("{__name__=~%q}", prefix+`\.agent\.`+ids+`\.metrics\.[0-9]+`)
}

// most returns how many points of an agent a round may have.
func (o *agentsOrigin) most(agent, round int) int64 {
	if round < o.First(agent) {
		return 0
	}
	if !o.state.Ended {
		return int64(o.Metrics)
	}
	f := o.Flushes(o.state.Timeline, agent)
	sent := func(metric int) bool {
		c, at := o.Position(o.state.Timeline, int64(agent)*int64(o.Metrics)+int64(metric), round)
		return at < o.state.Trail.Sent[c]
	}
	if !f.Window {
		return int64(sort.Search(o.Metrics, func(metric int) bool { return !sent(metric) }))
	}
	n := int64(0)
	for metric := range o.Metrics {
		if sent(metric) {
			n++
		}
	}
	return n
}

// least returns how many points must be stored in total, if some may have been lost. A point that was sent
// twice needs to be stored once, but the server's counter counts both.
func (o *agentsOrigin) least() int64 {
	sent := o.state.Trail.Kept()
	if o.sentBefore > 0 {
		sent = o.sentBefore
	}
	f := o.Flushes(o.state.Timeline, 0)
	if f.Twice == 0 {
		return int64(sent)
	}
	begun := sent/uint64(f.Metrics+f.Twice-f.Late) + uint64(o.Agents.Agents)
	return max(0, int64(sent)-int64(begun)*int64(f.Twice))
}
