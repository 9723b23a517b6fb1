package send

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/load/fleet"
	"github.com/shaledb/shale/internal/load/pace"
	"github.com/shaledb/shale/internal/load/statefile"
	"github.com/shaledb/shale/internal/load/tally"
	"github.com/shaledb/shale/internal/load/wire"
	"github.com/shaledb/shale/internal/model"
)

// Graphite sends the points of a fleet of agents as lines or pickles.
type Graphite struct {
	Agents   fleet.Agents
	Schedule pace.Schedule
	Target   string // host:port
	// NewConnections makes every flush of an agent open a new connection, as haggar does by default.
	NewConnections bool
	// Smooth spreads points evenly over the interval. Otherwise each agent flushes all of its metrics at once,
	// and the agents take turns.
	Smooth bool
	// MetricsURL is the page with the server's counter of received points. Empty: it is not read.
	MetricsURL string
	// MetricsToken is the token that this page requires; none if empty.
	MetricsToken string
	// State, if set, records the readings of the counter.
	State *statefile.Writer
	Tally *tally.Tally
}

const (
	WriteBytes    = 64 << 10
	DatagramBytes = 1400 // fits into a frame of Ethernet with its headers
	// burst is the longest part of a smooth schedule that is sent at once.
	burst = 10 * time.Millisecond
	// lastWrite is how long a write may still take when the time is over, so that no line is cut.
	lastWrite    = 2 * time.Second
	maxReconnect = time.Second
)

// Header returns the first line of the load's state file.
func (l *Graphite) Header() statefile.Header {
	return statefile.Header{Version: statefile.StateVersion, Timeline: l.Schedule.Timeline, Graphite: l.agents()}
}

// agents returns the shape with the end that the schedule sets.
func (l *Graphite) agents() *fleet.Agents {
	a := l.Agents
	if a.Disorder != (fleet.Disorder{}) {
		a.Disorder = a.Disorder.Until(l.Schedule.Rounds)
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

// Run sends the load until it is complete or its time is over, and returns its state and report. A server
// that is away does not fail the load: it reconnects until the time is over. Points in a buffer when a
// connection broke are not sent again, so that no point is received twice.
func (l *Graphite) Run(ctx context.Context) (*statefile.State, *GraphiteReport, error) {
	if err := l.Check(); err != nil {
		return nil, nil, err
	}
	state := statefile.New(l.Header())
	watch := newWatch(l.MetricsURL, l.MetricsToken, l.State, &state.Trail, l.Tally)
	watch.look(ctx)
	began, cpu := time.Now(), tally.UsedCPU()
	open, cancel := l.Schedule.Within(ctx)
	defer cancel()
	watching, stop := context.WithCancel(ctx)
	var watcher, senders sync.WaitGroup
	watcher.Go(func() { watch.run(watching) })

	broken := make([]bool, l.Agents.Connections)
	for i := range l.Agents.Connections {
		c := &connection{load: l, id: i, feed: wire.NewPoints(state.Graphite, i, l.Schedule.Timeline)}
		senders.Go(func() {
			c.run(open)
			state.Trail.Sent[i], broken[i] = c.feed.Made, c.broken
		})
	}
	senders.Wait()
	stop()
	watcher.Wait()
	took := time.Since(began)
	report := &GraphiteReport{
		Delivery: l.Tally.Deliver("graphite", l.Agents.Total(), took), Traffic: l.Tally.Traffic(l.Tally.Sent.Load(), took, tally.UsedCPU()-cpu),
	}
	watch.settle(ctx, uint64(report.Sent))

	for i, sent := range state.Trail.Sent {
		l.State.Append(statefile.RecordSent, uint64(i), sent)
		state.Trail.Broken = state.Trail.Broken || broken[i]
	}
	state.Ended = true
	l.State.Append(statefile.RecordEnd, uint64(time.Now().UnixNano()), 0)
	report.LastError = l.Tally.Complaint()
	if l.MetricsURL != "" {
		report.Received = &Received{Points: state.Trail.Kept(), Died: state.Trail.Died()}
	}
	return state, report, ctx.Err()
}

// connection sends the lines of its agents.
type connection struct {
	load   *Graphite
	id     int
	feed   *wire.Points
	conn   net.Conn
	stop   func() bool // of the deadline that the end of the load sets
	broken bool
	buf    []byte
}

func (c *connection) run(open context.Context) {
	l := c.load
	defer c.hangUp()
	perRound := l.Agents.AgentsOf(c.id) * c.feed.Size
	most, full, whole := perRound, WriteBytes, true
	if l.Agents.UDP {
		full = DatagramBytes
	}
	if l.Schedule.Interval > 0 {
		if whole = l.Smooth; whole {
			most = max(1, int(float64(perRound)*float64(burst)/float64(l.Schedule.Interval)))
		}
	}
	for l.Schedule.More(c.feed.Round) {
		lag, err := c.wait(open, whole)
		if err != nil || !c.dial(open) {
			return
		}
		l.Tally.SetLag(lag)
		var points int
		c.buf, points = c.feed.Fill(c.buf[:0], most, full, whole)
		c.write(points)
		if l.NewConnections && c.feed.Slot == 0 {
			c.hangUp()
		}
	}
}

// wait waits until the next points are due.
func (c *connection) wait(open context.Context, whole bool) (time.Duration, error) {
	l := c.load
	i, n := int64(c.feed.Agent), int64(l.Agents.Agents)
	switch {
	case l.Agents.Spawn.Interval > 0:
		i, n = int64(l.Agents.Phase(c.feed.Agent)), int64(l.Agents.Spawn.Flush)
	case whole:
		i = int64(c.feed.Agent/l.Agents.Connections*c.feed.Size + c.feed.Slot)
		n = int64(l.Agents.AgentsOf(c.id) * c.feed.Size)
	}
	return l.Schedule.Wait(open, c.feed.Round, i, n)
}

// dial connects unless it is connected, with retries. It returns false when the time is over.
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
			c.load.Tally.Fault(err.Error())
		}
		if pace.Sleep(open, backoff) != nil {
			return false
		}
		c.load.Tally.Retries.Add(1)
	}
	return true
}

func (c *connection) hangUp() {
	if c.conn == nil {
		return
	}
	c.stop()
	if err := c.conn.Close(); err != nil {
		c.load.Tally.Complain(err.Error())
	}
	c.conn = nil
}

// write writes the buffer. After an error it gives up the connection, because the server may have read any
// part of the buffer.
func (c *connection) write(points int) {
	t := c.load.Tally
	began := time.Now()
	n, err := c.conn.Write(c.buf)
	t.Attempt(int64(n), int64(n))
	if err == nil {
		t.Observe(time.Since(began))
		t.Sent.Add(int64(points))
		return
	}
	whole := c.feed.Arrived(c.buf[:n])
	t.Sent.Add(int64(whole))
	t.Lost.Add(int64(points - whole))
	t.Fault(err.Error())
	c.broken = true
	c.load.State.Append(statefile.RecordLost, uint64(c.id), uint64(points-whole))
	if !c.load.Agents.UDP {
		c.hangUp()
	}
}
