package wire

import (
	"bytes"
	"strconv"

	"github.com/shaledb/shale/internal/load/fleet"
	"github.com/shaledb/shale/internal/load/pace"
	"github.com/shaledb/shale/internal/load/values"
)

// Points makes the points of one connection in order.
type Points struct {
	agents     *fleet.Agents
	connection int
	timeline   pace.Timeline
	flushes    fleet.Flushes // the same for all agents of the connection

	Made   uint64 // points so far
	Round  int
	Agent  int
	Slot   int // of the flush
	Size   int // of the flush
	metric int
	// own is the flush's own round, late the round of its late points, and now the round of the next point.
	own, late flush
	now       *flush

	before, after []byte // of the number of a metric, in the agent's names
	name          []byte
	Frames        []Frame
}

// flush is the state that the points of an agent and a round share.
type flush struct {
	values.Instant
	from    int    // first metric of the window
	seconds int64  // Unix time
	stamp   []byte // " <seconds>\n"
}

// Frame is a message of several points, which counts only if all of it arrived.
type Frame struct {
	End    int // in the buffer
	Points int
}

func NewPoints(a *fleet.Agents, connection int, t pace.Timeline) *Points {
	l := &Points{agents: a, connection: connection, timeline: t, Agent: connection}
	l.flushes = a.Flushes(t, l.Agent)
	l.Round = a.First(l.Agent)
	l.turn()
	return l
}

// turn prepares the agent's flush of the round.
func (l *Points) turn() {
	a := l.agents
	inAll := l.Round - a.First(l.Agent)
	l.Size = l.flushes.Size(inAll)
	l.before = a.AppendBefore(l.before[:0], l.Agent)
	l.after = append(a.AppendAfter(l.after[:0], l.Agent), ' ')
	l.set(&l.own, l.Round)
	if l.flushes.Late > 0 {
		l.set(&l.late, max(0, l.Round-l.flushes.Lag))
	}
	l.Slot = 0
	l.aim()
}

func (l *Points) set(f *flush, round int) {
	a := l.agents
	f.Instant = a.At(round)
	f.from = l.flushes.From(l.Agent, round-a.First(l.Agent))
	f.seconds = a.Stamp(l.timeline, l.Agent, round) / 1e9
	f.stamp = append(strconv.AppendInt(append(f.stamp[:0], ' '), f.seconds, 10), '\n')
}

// aim finds the next point.
func (l *Points) aim() {
	if l.now = &l.own; !l.flushes.Window {
		l.metric = l.Slot
		return
	}
	var late bool
	if l.metric, late = l.flushes.Slot(l.Slot, l.Round-l.agents.First(l.Agent), l.own.from, l.late.from); late {
		l.now = &l.late
	}
}

// series returns the number of the next series.
func (l *Points) series() uint64 { return uint64(l.Agent)*uint64(l.agents.Metrics) + uint64(l.metric) }

// advance moves to the next point, and reports whether an agent's flush or a round is complete.
func (l *Points) advance() (flushed, rounded bool) {
	a := l.agents
	l.Made++
	if l.Slot++; l.Slot < l.Size {
		l.aim()
		return false, false
	}
	if l.Agent += a.Connections; l.Agent >= a.Agents {
		l.Agent = l.connection
		l.Round++
		rounded = true
	}
	l.turn()
	return true, rounded
}

// Fill appends points until there are max points or full bytes, or the round ends, or the agent's flush ends
// unless whole is set. Only a single line or message may exceed full. It returns how many points it made.
func (l *Points) Fill(dst []byte, max, full int, whole bool) ([]byte, int) {
	if l.agents.Protocol == fleet.Pickle {
		return l.pickles(dst, max, full, whole)
	}
	a, n := l.agents, 0
	for n < max {
		begin := len(dst)
		dst = append(dst, l.before...)
		dst = strconv.AppendInt(dst, int64(l.metric), 10)
		dst = append(dst, l.after...)
		dst = a.Value.AppendText(dst, &l.now.Instant, l.series())
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

// Arrived returns how many points of a buffer of n points are complete in the bytes that were written of it.
func (l *Points) Arrived(written []byte) (points int) {
	if l.agents.Protocol != fleet.Pickle {
		return bytes.Count(written, []byte{'\n'})
	}
	for _, f := range l.Frames {
		if f.End <= len(written) {
			points += f.Points
		}
	}
	return points
}
