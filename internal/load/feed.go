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
	flushes    flushes // the same for all agents of the connection

	made   uint64 // points so far
	round  int
	agent  int
	slot   int // of the flush
	size   int // of the flush
	metric int
	// own and late are of the flush's round, and of that from which late points come; now is the one that is next.
	own, late flush
	now       *flush

	before, after []byte // of the number of a metric, in the agent's names
	name          []byte
	frames        []frame
}

// flush is what the points of an agent and a round have in common.
type flush struct {
	instant
	from    int    // first metric of the window
	seconds int64  // Unix time
	stamp   []byte // " <seconds>\n"
}

// frame is a message of several points, which counts only if it arrived whole.
type frame struct {
	end    int // in the buffer
	points int
}

func newFeed(a *Agents, connection int, t Timeline) *feed {
	l := &feed{agents: a, connection: connection, timeline: t, agent: connection}
	l.flushes = a.flushes(t, l.agent)
	l.round = a.first(l.agent)
	l.turn()
	return l
}

// turn makes ready for the agent's flush of the round.
func (l *feed) turn() {
	a := l.agents
	inAll := l.round - a.first(l.agent)
	l.size = l.flushes.size(inAll)
	l.before = a.appendBefore(l.before[:0], l.agent)
	l.after = append(a.appendAfter(l.after[:0], l.agent), ' ')
	l.set(&l.own, l.round)
	if l.flushes.late > 0 {
		l.set(&l.late, max(0, l.round-l.flushes.lag))
	}
	l.slot = 0
	l.aim()
}

func (l *feed) set(f *flush, round int) {
	a := l.agents
	f.instant = a.at(round)
	f.from = l.flushes.from(l.agent, round-a.first(l.agent))
	f.seconds = a.stamp(l.timeline, l.agent, round) / 1e9
	f.stamp = append(strconv.AppendInt(append(f.stamp[:0], ' '), f.seconds, 10), '\n')
}

// aim finds out which point is next.
func (l *feed) aim() {
	if l.now = &l.own; !l.flushes.window {
		l.metric = l.slot
		return
	}
	var late bool
	if l.metric, late = l.flushes.slot(l.slot, l.round-l.agents.first(l.agent), l.own.from, l.late.from); late {
		l.now = &l.late
	}
}

// series returns the number of the series that is next.
func (l *feed) series() uint64 { return uint64(l.agent)*uint64(l.agents.Metrics) + uint64(l.metric) }

// advance goes on to the next point, and reports whether an agent's flush or a round is complete.
func (l *feed) advance() (flushed, rounded bool) {
	a := l.agents
	l.made++
	if l.slot++; l.slot < l.size {
		l.aim()
		return false, false
	}
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
		dst = a.Value.AppendText(dst, &l.now.instant, l.series())
		dst = append(dst, l.now.stamp...)
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
