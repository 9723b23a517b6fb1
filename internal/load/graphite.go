package load

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// Graphite sends the points of a fleet of agents as lines or pickles.
type Graphite struct {
	Agents   Agents
	Schedule Schedule
	Target   string // host:port
	// NewConnections makes every flush of an agent connect anew, as haggar does by default.
	NewConnections bool
	// Smooth spreads points evenly over the interval. Otherwise each agent flushes all of its metrics at once, and
	// the agents take turns.
	Smooth bool
	// MetricsURL is where the server says what it has received. Empty: nobody asks.
	MetricsURL string
	// State, if set, witnesses what the server said.
	State *StateWriter
	Tally *Tally
}

const (
	writeBytes    = 64 << 10
	datagramBytes = 1400 // fits into a frame of Ethernet with its headers
	// burst is the longest part of a smooth schedule that is sent at once.
	burst = 10 * time.Millisecond
	// lastWrite is how long a write may still take when the time is over, so that no line is cut.
	lastWrite    = 2 * time.Second
	maxReconnect = time.Second
)

// Header returns the first line of the load's state file.
func (l *Graphite) Header() Header {
	return Header{Version: stateVersion, Timeline: l.Schedule.Timeline, Graphite: l.agents()}
}

// agents returns the shape with the end that the schedule gives it.
func (l *Graphite) agents() *Agents {
	a := l.Agents
	if a.Disorder != (Disorder{}) {
		a.Disorder = a.Disorder.until(l.Schedule.rounds)
	}
	return &a
}

// Check returns an error of class [model.ErrInvalid] unless the load can be sent.
func (l *Graphite) Check() error {
	if _, _, err := net.SplitHostPort(l.Target); err != nil {
		return fmt.Errorf("%w: load: target %q: want host:port", model.ErrInvalid, l.Target)
	}
	if l.Agents.Spawn.Interval > 0 && l.Smooth {
		return fmt.Errorf("%w: load: agents that are launched one by one flush at intervals; a rate spreads points evenly", model.ErrInvalid)
	}
	return l.Agents.Check()
}

// Run sends the load until it is complete or its time is over, and returns what is known of it then. A server that is
// away is no error: connections are made again until the time is over. What stood in a buffer when a connection broke
// is not sent again, so that no point is ever received twice.
func (l *Graphite) Run(ctx context.Context) (*State, *Report, error) {
	if err := l.Check(); err != nil {
		return nil, nil, err
	}
	state := newState(l.Header())
	watch := newWatch(l.MetricsURL, l.State, &state.Trail, l.Tally)
	watch.look(ctx)
	began, cpu := time.Now(), usedCPU()
	open, cancel := l.Schedule.within(ctx)
	defer cancel()
	watching, stop := context.WithCancel(ctx)
	var watcher, senders sync.WaitGroup
	watcher.Go(func() { watch.run(watching) })

	broken := make([]bool, l.Agents.Connections)
	for i := range l.Agents.Connections {
		c := &connection{load: l, id: i, feed: newFeed(state.Graphite, i, l.Schedule.Timeline)}
		senders.Go(func() {
			c.run(open)
			state.Trail.Sent[i], broken[i] = c.feed.made, c.broken
		})
	}
	senders.Wait()
	stop()
	watcher.Wait()
	report := l.Tally.report(kindGraphite, l.Agents.Total(), time.Since(began), usedCPU()-cpu)
	watch.settle(ctx, uint64(report.Sent))

	for i, sent := range state.Trail.Sent {
		l.State.append(recordSent, uint64(i), sent)
		state.Trail.Broken = state.Trail.Broken || broken[i]
	}
	state.Ended = true
	l.State.append(recordEnd, uint64(time.Now().UnixNano()), 0)
	if l.MetricsURL != "" {
		report.Received = &Received{Points: state.Trail.Kept(), Died: state.Trail.Died()}
	}
	return state, report, ctx.Err()
}

// connection sends the lines of its agents.
type connection struct {
	load   *Graphite
	id     int
	feed   *feed
	conn   net.Conn
	stop   func() bool // of the deadline that the end of the load sets
	broken bool
	buf    []byte
}

func (c *connection) run(open context.Context) {
	l := c.load
	defer c.hangUp()
	perRound := l.Agents.agentsOf(c.id) * c.feed.size
	most, full, whole := perRound, writeBytes, true
	if l.Agents.UDP {
		full = datagramBytes
	}
	if l.Schedule.interval > 0 {
		if whole = l.Smooth; whole {
			most = max(1, int(float64(perRound)*float64(burst)/float64(l.Schedule.interval)))
		}
	}
	for l.Schedule.more(c.feed.round) {
		lag, err := c.wait(open, whole)
		if err != nil || !c.dial(open) {
			return
		}
		l.Tally.late(lag)
		var points int
		c.buf, points = c.feed.fill(c.buf[:0], most, full, whole)
		c.write(points)
		if l.NewConnections && c.feed.slot == 0 {
			c.hangUp()
		}
	}
}

// wait waits until the next points are due.
func (c *connection) wait(open context.Context, whole bool) (time.Duration, error) {
	l := c.load
	i, n := int64(c.feed.agent), int64(l.Agents.Agents)
	switch {
	case l.Agents.Spawn.Interval > 0:
		i, n = int64(l.Agents.phase(c.feed.agent)), int64(l.Agents.Spawn.Flush)
	case whole:
		i = int64(c.feed.agent/l.Agents.Connections*c.feed.size + c.feed.slot)
		n = int64(l.Agents.agentsOf(c.id) * c.feed.size)
	}
	return l.Schedule.wait(open, c.feed.round, i, n)
}

// dial connects unless it is connected, as often as it takes. It returns false when the time is over.
func (c *connection) dial(open context.Context) bool {
	network := "tcp"
	if c.load.Agents.UDP {
		network = "udp"
	}
	dialer := net.Dialer{Timeout: 10 * time.Second}
	for backoff := minBackoff; c.conn == nil; backoff = min(2*backoff, maxReconnect) {
		conn, err := dialer.DialContext(open, network, c.load.Target)
		if err == nil {
			c.conn = conn
			c.stop = context.AfterFunc(open, func() { _ = conn.SetWriteDeadline(time.Now().Add(lastWrite)) })
			break
		}
		if open.Err() == nil {
			c.load.Tally.faults.Add(1)
			c.load.Tally.complain(err.Error())
		}
		if sleep(open, backoff) != nil {
			return false
		}
		c.load.Tally.retries.Add(1)
	}
	return true
}

func (c *connection) hangUp() {
	if c.conn == nil {
		return
	}
	c.stop()
	if err := c.conn.Close(); err != nil {
		c.load.Tally.complain(err.Error())
	}
	c.conn = nil
}

// write writes the buffer. After an error nobody knows what the server has read, and the connection is given up.
func (c *connection) write(points int) {
	t := c.load.Tally
	began := time.Now()
	n, err := c.conn.Write(c.buf)
	t.requests.Add(1)
	t.wireBytes.Add(int64(n))
	t.rawBytes.Add(int64(n))
	if err == nil {
		t.latency.Observe(time.Since(began))
		t.sent.Add(int64(points))
		return
	}
	whole := c.feed.arrived(c.buf[:n])
	t.sent.Add(int64(whole))
	t.lost.Add(int64(points - whole))
	t.faults.Add(1)
	t.complain(err.Error())
	c.broken = true
	c.load.State.append(recordLost, uint64(c.id), uint64(points-whole))
	if !c.load.Agents.UDP {
		c.hangUp()
	}
}
