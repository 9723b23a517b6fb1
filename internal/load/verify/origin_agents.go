package verify

import (
	"fmt"
	"github.com/shaledb/shale/internal/load/fleet"
	"github.com/shaledb/shale/internal/load/statefile"
	"sort"
	"strconv"
	"strings"
	"time"
)

// agentsOrigin knows of a Graphite load what was written, and how much of it the server has said to have
// received.
type agentsOrigin struct {
	*fleet.Agents
	state *statefile.State
	// intact is set if nothing happened that could lose a point that was written.
	intact bool
	// prefix is how many points of the only connection must be there although something happened.
	prefix uint64
	// sentBefore is how many points must be there in all, if the caller knows better than the server's counter.
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

// connectionsApart is by how many rounds one connection may be ahead of what all of them have sent on
// average. It bounds what is looked at when the process that sent was killed.
const connectionsApart = 16

func (o *agentsOrigin) rounds() int                                    { return o.last }
func (o *agentsOrigin) CycleOf(map[string]string) (cycle int, ok bool) { return 0, true }
func (o *agentsOrigin) cycle(int64, int) int                           { return 0 }
func (o *agentsOrigin) ended(int64, int) (int, standing)               { return 0, never }

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

func (o *agentsOrigin) standing(g int64, round int) standing {
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

// counts asks for a few agents at a time, and for some of the rounds if one agent alone is too much. No agent
// has a lower bound: the server's counter knows no agents.
//
// count_over_time will not do: it drops the name, which is all that tells these series apart, and Prometheus
// refuses an answer in which labels come twice. last_over_time keeps it, and over the milliseconds of one
// round it gives the points of exactly that round: each series has one, somewhere between the beginning of
// the round and that of the next.
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

// most returns how many points of an agent may be there of a round.
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

// least returns how many points must be there in all, if something happened that could lose some. Of what was
// sent twice one is enough, and the counter of the server counts both.
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
