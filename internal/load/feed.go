package load

import (
	"bytes"
	"strconv"
)

// feed makes the points of one connection in their order.
type feed struct {
	agents     *Agents
	connection int
	timeline   Timeline

	made   uint64 // points so far
	round  int
	agent  int
	metric int
	now    instant

	seconds       int64  // Unix time of the agent's points in the round
	stamp         []byte // " <seconds>\n"
	before, after []byte // of the number of a metric, in the agent's names

	name   []byte
	frames []frame
}

// frame is a message of several points, which counts only if it arrived whole.
type frame struct {
	end    int // in the buffer
	points int
}

func newFeed(a *Agents, connection int, t Timeline) *feed {
	l := &feed{agents: a, connection: connection, timeline: t, agent: connection}
	l.round = a.first(l.agent)
	l.turn()
	return l
}

// turn makes ready for the agent's points of the round.
func (l *feed) turn() {
	a := l.agents
	l.now = a.at(l.round)
	l.seconds = a.stamp(l.timeline, l.agent, l.round) / 1e9
	l.stamp = append(strconv.AppendInt(append(l.stamp[:0], ' '), l.seconds, 10), '\n')
	l.before = a.appendBefore(l.before[:0], l.agent)
	l.after = append(a.appendAfter(l.after[:0], l.agent), ' ')
}

// series returns the number of the series that is next.
func (l *feed) series() uint64 { return uint64(l.agent)*uint64(l.agents.Metrics) + uint64(l.metric) }

// advance goes on to the next point, and reports whether an agent's flush or a round is complete.
func (l *feed) advance() (flushed, rounded bool) {
	a := l.agents
	l.made++
	if l.metric++; l.metric < a.Metrics {
		return false, false
	}
	l.metric = 0
	if l.agent += a.Connections; l.agent >= a.Agents {
		l.agent = l.connection
		l.round++
		rounded = true
	}
	l.turn()
	return true, rounded
}

// fill appends points until there are max, or full bytes, or the round is over, or, if whole is not set, the agent is.
// Nothing goes beyond full, unless it is one line or one message. It returns how many points it made.
func (l *feed) fill(dst []byte, max, full int, whole bool) ([]byte, int) {
	if l.agents.Protocol == Pickle {
		return l.pickles(dst, max, full, whole)
	}
	a, n := l.agents, 0
	for n < max {
		begin := len(dst)
		dst = append(dst, l.before...)
		dst = strconv.AppendInt(dst, int64(l.metric), 10)
		dst = append(dst, l.after...)
		dst = a.Value.AppendText(dst, &l.now, l.series())
		dst = append(dst, l.stamp...)
		if len(dst) > full && n > 0 {
			return dst[:begin], n
		}
		n++
		if flushed, rounded := l.advance(); rounded || flushed && !whole {
			break
		}
	}
	return dst, n
}

// arrived returns how many of the points in a buffer of n points lie in the bytes that were written of it.
func (l *feed) arrived(written []byte) (points int) {
	if l.agents.Protocol != Pickle {
		return bytes.Count(written, []byte{'\n'})
	}
	for _, f := range l.frames {
		if f.end <= len(written) {
			points += f.points
		}
	}
	return points
}
