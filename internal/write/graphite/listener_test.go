package graphite

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/shaledb/shale/internal/logtest"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/writetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// store is a store whose disk may be full.
type store struct {
	*writetest.Store
	// room is what the write path gets when it asks for room.
	room error
}

func newStore() *store { return &store{Store: writetest.NewStore(seed)} }

func (s *store) Room() error {
	s.Lock()
	defer s.Unlock()
	return s.room
}

func (s *store) setRoom(err error) {
	s.Lock()
	defer s.Unlock()
	s.room = err
}

func (s *store) setFail(err error) {
	s.Lock()
	defer s.Unlock()
	s.Err = err
}

func (s *store) stored() int {
	s.Lock()
	defer s.Unlock()
	return s.Samples
}

func (s *store) wait(t *testing.T, n int) {
	t.Helper()
	eventually(t, func() bool { return s.stored() >= n }, func() string { return fmt.Sprintf("%d of %d rows", s.stored(), n) })
	if got := s.stored(); got != n {
		t.Fatalf("%d rows, want %d", got, n)
	}
}

func eventually(t *testing.T, ok func() bool, state func() string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", state())
		}
	}
}

// bench is a running listener with its store.
type bench struct {
	*Listener
	s   *store
	log *logtest.Buffer
	reg *prometheus.Registry
}

func start(t *testing.T, s *store, o Options, limits write.Limits) *bench {
	t.Helper()
	b := &bench{s: s, log: new(logtest.Buffer), reg: prometheus.NewRegistry()}
	o.Listen, o.Registerer = "127.0.0.1:0", b.reg
	o.Logger = slog.New(slog.NewTextHandler(b.log, nil))
	o.Sink = write.New(write.Options{Seed: seed, Head: s, Journal: s, Limits: limits, Room: s.Room, Now: func() int64 { return testNow }, Registerer: b.reg, Logger: o.Logger})
	var err error
	if b.Listener, err = New(o); err != nil {
		t.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- b.Serve() }()
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return b
}

func (b *bench) dial(t *testing.T, network string) net.Conn {
	t.Helper()
	nc, err := net.Dial(network, b.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	return nc
}

func say(t *testing.T, w io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) want(t *testing.T, c prometheus.Collector, want float64) {
	t.Helper()
	eventually(t, func() bool { return testutil.ToFloat64(c) == want }, func() string { return fmt.Sprintf("counter is %v, want %v", testutil.ToFloat64(c), want) })
}

// wantDiscarded expects what the write path counts as discarded, by reason.
func (b *bench) wantDiscarded(t *testing.T, want map[string]float64) {
	t.Helper()
	families, err := b.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		if f.GetName() == "shale_write_discarded_samples_total" {
			for _, m := range f.GetMetric() {
				got[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("discarded %v, want %v", got, want)
	}
}

func limits() write.Limits {
	return write.Limits{MaxInflightBytes: 16 << 20, MaxLabels: 64, MaxNameBytes: 1024, MaxValueBytes: 4096, MaxFuture: 10 * time.Minute}
}

func TestTCPStoresLines(t *testing.T) {
	b := start(t, newStore(), Options{}, limits())
	nc := b.dial(t, "tcp")
	say(t, nc, "a.b 1.5 1700000000\na.c;dc=x 2 1700000000\nbad line\n\na.b nan 1700000060\na.b 2")
	say(t, nc, ".5 1700000060\na.b 3 9999999999999\na.b 4 1700009999\na.b 5 -1")
	b.s.wait(t, 3) // the last line has no newline yet
	nc.(*net.TCPConn).CloseWrite()
	b.s.wait(t, 4)
	b.want(t, b.metrics.tcp.received, 4)
	b.want(t, b.metrics.tcp.lines, 8)
	b.want(t, b.metrics.tcp.bad, 1)
	r := b.s.Rows[`anonymous{__name__="a.b"}`]
	if r.Len() != 3 || r.Values[1] != math.Float64bits(2.5) || r.Times[1] != 1_700_000_060_000_000_000 || r.Times[2] != testNow/second*second {
		t.Fatalf("got %+v", r)
	}
	if b.s.Rows[`anonymous{__name__="a.c", dc="x"}`] == nil {
		t.Fatalf("got %v", b.s.Rows)
	}
	eventually(t, func() bool {
		return strings.Contains(b.log.String(), "bad line") && strings.Contains(b.log.String(), nc.LocalAddr().String()) &&
			strings.Contains(b.log.String(), "too_far_in_future") &&
			strings.Contains(b.log.String(), `tenant=anonymous reason=nan rows="1 sample" first="the value is NaN: a.b nan 1700000060"`)
	}, b.log.String)
	// The server has closed its side, too.
	if n, err := nc.Read(make([]byte, 1)); err != io.EOF {
		t.Fatalf("%d, %v", n, err)
	}
}

// A last line without a newline is stored, unless the sender broke off or its time may have lost digits.
func TestLastLine(t *testing.T) {
	for _, c := range []struct {
		line   string
		reset  bool
		stored bool
	}{
		{"a 1 1700000000", false, true}, {"a 1 1700000000.", false, true}, {"a 1 -1", false, true},
		{"a 1 170000000", false, false}, {"a 1 1", false, false}, {"a 1", false, false}, {"a 1 1700000000", true, false},
	} {
		b := start(t, newStore(), Options{}, write.Limits{MaxFuture: time.Hour})
		nc := b.dial(t, "tcp").(*net.TCPConn)
		say(t, nc, "first 1 1700000000\n"+c.line)
		b.s.wait(t, 1)
		if c.reset {
			_ = nc.SetLinger(0)
		}
		if err := nc.Close(); err != nil {
			t.Fatal(err)
		}
		if c.stored {
			b.s.wait(t, 2)
			continue
		}
		eventually(t, func() bool { return testutil.ToFloat64(b.metrics.tcp.bad) == 1 }, b.log.String)
		b.wantDiscarded(t, map[string]float64{"bad_line": 1})
		if !strings.Contains(b.log.String(), "bad line: ") {
			t.Errorf("%q: the log is %q", c.line, b.log.String())
		}
		if n := b.s.stored(); n != 1 {
			t.Errorf("%q: %d rows", c.line, n)
		}
	}
}

// A point with malformed tags is stored under its whole path, and the log says so. Limits of series name
// their reason.
func TestOddNames(t *testing.T) {
	b := start(t, newStore(), Options{}, write.Limits{MaxFuture: time.Hour, MaxLabels: 64, MaxValueBytes: 4096, MaxNameBytes: 1024})
	nc := b.dial(t, "tcp")
	say(t, nc, "m{a=\"b\"} 1 1700000000\nm;host= 1 1700000000\n"+
		"m"+tags(64)+" 1 1700000000\n"+strings.Repeat("n", 4097)+" 1 1700000000\nm"+tags(1025)+" 1 1700000000\n")
	b.s.wait(t, 2)
	eventually(t, func() bool { return testutil.ToFloat64(b.metrics.tcp.lines) == 5 }, b.log.String)
	for _, want := range []string{`anonymous{__name__="m", a="b"}`, `anonymous{__name__="m;host="}`} {
		if b.s.Rows[want] == nil {
			t.Errorf("no %s", want)
		}
	}
	eventually(t, func() bool { return strings.Contains(b.log.String(), "reason=too_many_labels") }, b.log.String)
	if !strings.Contains(b.log.String(), "a tag has no value; the point is stored, with the whole path as its name") {
		t.Error(b.log.String())
	}
	b.wantDiscarded(t, map[string]float64{"bad_line": 1, "too_many_labels": 1, "label_value_too_long": 1})
}

func TestTCPLongLines(t *testing.T) {
	b := start(t, newStore(), Options{MaxLineBytes: 10_000}, limits())
	nc := b.dial(t, "tcp")
	long := strings.Repeat("x", 50_000)
	say(t, nc, "a 1 1700000000\n"+long+" 1 1700000000\nb 1 1700000000\n"+long)
	time.Sleep(5 * time.Millisecond)
	say(t, nc, long+"\nc 1 1700000000\n"+strings.Repeat("y", 10_001)+"\n")
	fits := strings.Repeat("z", 4000)
	say(t, nc, fits+" 1 1700000000"+strings.Repeat(" ", 10_000-4013)+"\n")
	b.s.wait(t, 4)
	b.want(t, b.metrics.tcp.bad, 3)
	if b.s.Rows[`anonymous{__name__="`+fits+`"}`] == nil {
		t.Fatal("a line of the greatest length is missing")
	}
	if len(b.log.String()) > 2000 {
		t.Fatalf("logged %d bytes", len(b.log.String()))
	}
}

// TestTCPStream sends many lines in pieces that ignore line boundaries, and expects every row in the
// order sent.
func TestTCPStream(t *testing.T) {
	const series, rounds = 5000, 20
	b := start(t, newStore(), Options{}, limits())
	var wg sync.WaitGroup
	for g := range 4 {
		nc := b.dial(t, "tcp")
		wg.Go(func() {
			defer nc.Close()
			var text []byte
			for r := range rounds {
				for i := range series {
					text = fmt.Appendf(text, "agent.%d.metric.%d %d 1700000000\n", g, i, r)
				}
			}
			for n := 1; len(text) > 0; n = n*3%100_003 + 1 {
				n = min(n, len(text))
				if _, err := nc.Write(text[:n]); err != nil {
					t.Error(err)
					return
				}
				text = text[n:]
			}
		})
	}
	wg.Wait()
	b.s.wait(t, 4*series*rounds)
	if len(b.s.Rows) != 4*series {
		t.Fatalf("%d series", len(b.s.Rows))
	}
	for name, r := range b.s.Rows {
		for i, v := range r.Values {
			if v != math.Float64bits(float64(i)) {
				t.Fatalf("%s: value %d is %v", name, i, math.Float64frombits(v))
			}
		}
	}
	t.Logf("%d rows in %d pushes", b.s.Samples, b.s.Appends)
	b.want(t, b.metrics.connections, 0)
	b.want(t, b.metrics.buffers, 0)
	if free := b.buffers.free.Load(); free != b.o.MaxBufferBytes {
		t.Fatalf("%d bytes of buffers are not given back", b.o.MaxBufferBytes-free)
	}
	g, err := b.o.Sink.Admit(t.Context(), "x", limits().MaxInflightBytes)
	if err != nil {
		t.Fatalf("a part of the budget is not given back: %v", err)
	}
	g.Release()
}

func TestFullDiskHoldsTheSenderBack(t *testing.T) {
	s := newStore()
	s.setRoom(fmt.Errorf("%w: disk full", model.ErrTransient))
	small := limits()
	small.MaxInflightBytes = 1 << 20
	b := start(t, s, Options{}, small)
	nc := b.dial(t, "tcp")
	const lines = 300_000
	text := []byte(strings.Repeat(strings.Repeat("node.", 17)+"leaf 1 1700000000\n", lines))
	sent := make(chan error)
	go func() {
		_, err := nc.Write(text)
		nc.Close()
		sent <- err
	}()
	select {
	case err := <-sent:
		t.Fatalf("30 MB were taken without room for them: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	if s.stored() != 0 || !strings.Contains(b.log.String(), "disk full") {
		t.Fatalf("%d rows, log %s", s.stored(), b.log)
	}
	s.setRoom(nil)
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	s.wait(t, lines)
}

// TestRetryKeepsLabels refuses a batch with some rows that can never be stored, and accepts it later.
// The other rows must keep their own labels, and the rejected rows must be counted once.
func TestRetryKeepsLabels(t *testing.T) {
	s := newStore()
	s.setFail(fmt.Errorf("%w: the log is full", model.ErrTransient))
	b := start(t, s, Options{}, limits())
	say(t, b.dial(t, "tcp"), "early 1 1700999999\na 1 1700000000\nb;x="+strings.Repeat("x", 5000)+" 1 1700000000\nc;x=y 1 1700000000\n")
	eventually(t, func() bool { return testutil.ToFloat64(b.metrics.tcp.retries) >= 2 }, func() string { return "no retries" })
	s.setFail(nil)
	s.wait(t, 2)
	if s.Rows[`anonymous{__name__="a"}`] == nil || s.Rows[`anonymous{__name__="c", x="y"}`] == nil {
		t.Fatalf("got %v", s.Rows)
	}
	b.want(t, b.metrics.tcp.received, 2)
	b.wantDiscarded(t, map[string]float64{"label_value_too_long": 1, "too_far_in_future": 1})
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	b := start(t, newStore(), Options{IdleTimeout: 50 * time.Millisecond}, limits())
	nc := b.dial(t, "tcp")
	say(t, nc, "a 1 1700000000\nhalf 1 17000")
	if _, err := nc.Read(make([]byte, 1)); err != io.EOF {
		t.Fatal(err)
	}
	b.s.wait(t, 1)
	b.want(t, b.metrics.tcp.bad, 1)
}

func TestUDP(t *testing.T) {
	b := start(t, newStore(), Options{}, limits())
	nc := b.dial(t, "udp")
	say(t, nc, "a 1 1700000000\nb;x=y 2 1700000000")
	say(t, nc, "c 3 1700000000\nbad\n")
	say(t, nc, "d 4 1700000000\re 5 1700000000\u2028f 6 1700000000")
	b.s.wait(t, 6)
	b.want(t, b.metrics.udp.received, 6)
	b.want(t, b.metrics.udp.bad, 1)
	eventually(t, func() bool { return strings.Contains(b.log.String(), nc.LocalAddr().String()) }, b.log.String)
}

// TestUDPShares sends datagrams in pairs until a pair shares a push. On a busy machine, more than the
// linger may pass between the two.
func TestUDPShares(t *testing.T) {
	b := start(t, newStore(), Options{}, limits())
	nc := b.dial(t, "udp")
	for pairs := 1; pairs <= 20; pairs++ {
		say(t, nc, fmt.Sprintf("a 1 %d\n", 1700000000+pairs))
		say(t, nc, fmt.Sprintf("b 1 %d\n", 1700000000+pairs))
		b.s.wait(t, 2*pairs)
		b.s.Lock()
		shared := b.s.Appends < 2*pairs
		b.s.Unlock()
		if shared {
			return
		}
	}
	t.Error("none of 20 pairs of datagrams shared a push")
}

// TestUDPOverload lets no push through: only what does not fit into the queue is dropped and counted.
func TestUDPOverload(t *testing.T) {
	s := newStore()
	s.Gate = make(chan struct{})
	b := start(t, s, Options{}, limits())
	nc := b.dial(t, "udp")
	line := "a.metric.with.a.name 1 1700000000\n"
	datagram := strings.Repeat(line, 40)
	sent := 0
	for testutil.ToFloat64(b.metrics.droppedDatagrams) == 0 {
		say(t, nc, datagram)
		if sent += 40; sent%4000 == 0 {
			time.Sleep(time.Millisecond)
		}
		if sent > 10_000_000 {
			t.Fatal("nothing was dropped")
		}
	}
	// The kernel also drops datagrams when the test is faster than the reader. Wait until it has read
	// the others.
	seen := func() int {
		return int(testutil.ToFloat64(b.metrics.udp.lines) + testutil.ToFloat64(b.metrics.udp.dropped))
	}
	last := -1
	eventually(t, func() bool {
		before := last
		last = seen()
		time.Sleep(50 * time.Millisecond)
		return last == before
	}, func() string { return fmt.Sprintf("seen %d", seen()) })
	close(s.Gate)
	s.wait(t, int(testutil.ToFloat64(b.metrics.udp.lines)))
}

func TestUDPWithoutMemory(t *testing.T) {
	small := limits()
	small.MaxInflightBytes = 64 << 10
	b := start(t, newStore(), Options{}, small)
	nc := b.dial(t, "udp")
	say(t, nc, "a 1 1700000000\nb 1 1700000000\n")
	b.want(t, b.metrics.droppedDatagrams, 1)
	b.want(t, b.metrics.udp.dropped, 2)
}

// TestCloseDrains calls Close while everything waits for the disk, and then unblocks the disk.
func TestCloseDrains(t *testing.T) {
	s := newStore()
	s.Gate = make(chan struct{})
	b := start(t, s, Options{}, limits())
	tcp, udp := b.dial(t, "tcp"), b.dial(t, "udp")
	say(t, tcp, strings.Repeat("a 1 1700000000\n", 10_000))
	say(t, udp, "b 1 1700000000\n")
	b.want(t, b.metrics.udp.lines, 1)
	b.want(t, b.metrics.tcp.lines, 10_000)
	say(t, tcp, "half 1 17000")
	closed := make(chan error)
	go func() { closed <- b.Close() }()
	select {
	case <-closed:
		t.Fatal("closed before the rows were durable")
	case <-time.After(400 * time.Millisecond):
	}
	close(s.Gate)
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	if got := s.stored(); got != 10_001 {
		t.Fatalf("%d rows", got)
	}
	if _, err := net.Dial("tcp", b.Addr().String()); err == nil {
		t.Fatal("still listening")
	}
}

// closing is a listener that is being closed while one of its rows waits for a blocked disk.
func closing(t *testing.T, drain time.Duration) (b *bench, closed chan error, letGo func()) {
	t.Helper()
	s := newStore()
	s.Gate = make(chan struct{})
	b = start(t, s, Options{DrainTimeout: drain}, limits())
	letGo = sync.OnceFunc(func() { close(s.Gate) })
	t.Cleanup(letGo)
	say(t, b.dial(t, "tcp"), "a 1 1700000000\n")
	b.want(t, b.metrics.tcp.lines, 1)
	closed = make(chan error, 1)
	go func() { closed <- b.Close() }()
	return b, closed, letGo
}

// TestCloseGivesUp: rows that are not durable when the drain timeout ends are dropped. A second
// listener with a long timeout, whose Close began earlier, shows that it is this timeout: it is still
// waiting.
func TestCloseGivesUp(t *testing.T) {
	patient, drained, letGo := closing(t, time.Hour)
	// The timeout starts once the listener has stopped accepting connections.
	eventually(t, func() bool {
		nc, err := net.Dial("tcp", patient.Addr().String())
		if err == nil {
			nc.Close()
		}
		return err != nil
	}, func() string { return "still listening" })
	hasty, closed, _ := closing(t, 50*time.Millisecond)
	select {
	case err := <-closed:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(time.Minute): // only a guard against waiting forever
		t.Fatal("Close does not give up")
	}
	hasty.want(t, hasty.metrics.tcp.dropped, 1)
	hasty.want(t, hasty.metrics.tcp.received, 0)
	select {
	case <-drained:
		t.Fatal("the sibling gave up, too")
	case <-time.After(400 * time.Millisecond):
	}
	letGo()
	if err := <-drained; err != nil {
		t.Fatal(err)
	}
	patient.want(t, patient.metrics.tcp.received, 1)
	patient.want(t, patient.metrics.tcp.dropped, 0)
}

// TestSystemDropsAreCounted sends datagrams without reading any until the kernel drops some, and then
// finds each datagram either stored or counted.
func TestSystemDropsAreCounted(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux counts the drops of a socket")
	}
	s, reg := newStore(), prometheus.NewRegistry()
	l, err := New(Options{
		Listen: "127.0.0.1:0", Registerer: reg,
		Sink: write.New(write.Options{Seed: seed, Head: s, Journal: s, Limits: limits(), Now: func() int64 { return testNow }}),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.udp.SetReadBuffer(16 << 10); err != nil {
		t.Fatal(err)
	}
	nc, err := net.Dial("udp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	const sent = 500
	for range sent {
		say(t, nc, "a 1 1700000000\n")
	}
	drops := func() int {
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == "shale_graphite_kernel_dropped_datagrams_total" {
				return int(f.GetMetric()[0].GetCounter().GetValue())
			}
		}
		t.Fatal("no metric")
		return 0
	}
	dropped := drops()
	if dropped == 0 || dropped == sent {
		t.Fatalf("%d of %d dropped", dropped, sent)
	}
	served := make(chan error)
	go func() { served <- l.Serve() }()
	s.wait(t, sent-dropped)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil {
		t.Fatal(err)
	}
	if after := drops(); after != dropped {
		t.Fatalf("%d dropped after the socket was closed, %d before", after, dropped)
	}
}

func TestNewRefusesBadAddresses(t *testing.T) {
	sink := write.New(write.Options{})
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, address := range []string{"", "nonsense", "127.0.0.1:99999", taken.Addr().String()} {
		if l, err := New(Options{Listen: address, Sink: sink}); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%s: %v, %v", address, l, err)
		}
	}
	l, err := New(Options{Listen: "127.0.0.1:0", Sink: sink})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Serve(); err != nil {
		t.Fatal(err)
	}
}

func TestChunkMemory(t *testing.T) {
	var p pool[chunk, *chunk]
	small, big := p.get(true), p.get(true)
	small.addName([]byte("a"), model.Key{}, 0, 0)
	big.labels = make([]byte, maxSmall+1)
	p.put(big)
	p.put(small)
	if c := p.get(true); c != big || c.rows() != 0 {
		t.Fatal("a large chunk is not used first")
	}
	for range 2 * maxLarge {
		p.put(&chunk{labels: make([]byte, maxSmall+1)})
	}
	if len(p.large) != maxLarge {
		t.Fatalf("%d large chunks are kept", len(p.large))
	}
	p.large, p.most = nil, 2*maxSmall
	p.put(&chunk{labels: make([]byte, p.most+1)})
	if c := p.get(false); len(p.large) != 0 || c == big {
		t.Fatal("a chunk of unusual size is kept")
	}
}
