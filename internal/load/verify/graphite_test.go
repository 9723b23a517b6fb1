package verify

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/load/fleet"
	"github.com/shaledb/shale/internal/load/pace"
	"github.com/shaledb/shale/internal/load/send"
	"github.com/shaledb/shale/internal/load/statefile"
	"github.com/shaledb/shale/internal/load/tally"
	"github.com/shaledb/shale/internal/load/values"
	"github.com/shaledb/shale/internal/racetest"
)

func smallGraphite(t *testing.T, target, url string, timing pace.Timing) *send.Graphite {
	t.Helper()
	a := fleet.Agents{Seed: 5, Prefix: "p.q", Agents: 5, Metrics: 20, Connections: 2, Value: values.Gauge}
	s, err := timing.Schedule(time.Now(), a.Total(), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	l := &send.Graphite{Agents: a, Schedule: s, Target: target, Smooth: timing.Rate > 0, Tally: &tally.Tally{}}
	if url != "" {
		l.MetricsURL = url + "/metrics"
	}
	return l
}

func TestGraphiteVerifies(t *testing.T) {
	t.Parallel()
	for name, timing := range racetest.Only(map[string]pace.Timing{
		"as fast as it goes": {Rounds: 30},
		"agents flush":       {Rounds: 4, Interval: 100 * time.Millisecond},
		"smooth":             {Rate: 1000, Rounds: 5},
		"until the time":     {Rate: 1000, Duration: 450 * time.Millisecond},
	}, "agents flush", "until the time") {
		t.Run(name, func(t *testing.T) {
			store := newMemStore()
			store.received = 17 // of an earlier load
			srv := store.serve(t)
			l := smallGraphite(t, store.listen(t, "127.0.0.1:0").Addr().String(), srv.URL, timing)
			states, report := runAndReload(t, l, &l.State)
			if timing.Rounds > 0 && report.Sent != int64(timing.Rounds)*100 || report.Sent == 0 || report.Lost != 0 ||
				report.Received.Points != uint64(report.Sent) || report.Received.Died {
				t.Errorf("report %+v, received %+v", report, report.Received)
			}
			for which, s := range states {
				for _, chunk := range []int64{1 << 40, 100, 1} {
					v := verify(t, srv.URL, s, func(v *SampleVerifier) { v.Chunk = chunk })
					if !v.OK() || v.Compared != report.Sent || v.Counted != report.Sent || v.CountedOf != report.Sent {
						t.Errorf("%s, chunk %d: %+v", which, chunk, v)
					}
				}
			}
			id := store.some()[42]
			delete(store.samples[id], first(store, id))
			if v := verify(t, srv.URL, states["kept"], nil); v.Missing != 1 || v.Short != 1 || v.Wrong+v.Extra+v.Over != 0 {
				t.Errorf("a lost point: %+v", v)
			}
		})
	}
}

// TestGraphiteServerDies kills the server during the load. What its counter said a second before must be
// there.
func TestGraphiteServerDies(t *testing.T) {
	t.Parallel()
	store := newMemStore()
	gate := &gated{memStore: store}
	srv := httptest.NewServer(gate)
	defer srv.Close()
	lis := store.listen(t, "127.0.0.1:0")
	addr := lis.Addr().String()
	l := smallGraphite(t, addr, srv.URL, pace.Timing{Rate: 2000, Rounds: 160})
	l.Agents.Connections = 1
	done := make(chan struct{}, 1)
	var state *statefile.State
	var report *send.GraphiteReport
	go func() {
		state, report, _ = l.Run(t.Context())
		done <- struct{}{}
	}()
	// Two looks at the counter since enough has been received are a second apart.
	for looks := 0; looks < 2; time.Sleep(5 * time.Millisecond) {
		if looks = gate.looks(1500); len(done) > 0 {
			t.Fatal("the load is over")
		}
	}
	gate.set(true)
	store.kill(lis)
	time.Sleep(300 * time.Millisecond)
	store.mu.Lock()
	store.received, store.life = 0, 2000
	store.mu.Unlock()
	store.listen(t, addr)
	gate.set(false)
	<-done

	first := state.Trail.Lives().First
	if !state.Trail.Died() || !state.Trail.Broken || first < 1500 || state.Trail.Kept() <= first || report.Faults == 0 {
		t.Errorf("first life %d, kept %d, died %v, report %+v", first, state.Trail.Kept(), state.Trail.Died(), report)
	}
	v := verify(t, srv.URL, state, nil)
	if !v.OK() || v.Compared < int64(first) || v.Counted < v.CountedOf || v.CountedOf != int64(state.Trail.Kept()) {
		t.Errorf("%+v", v)
	}
	// Now lose what had been received long before the server died: both proofs must see it.
	for _, s := range store.samples {
		delete(s, state.Timeline.Ms(2))
	}
	if v := verify(t, srv.URL, state, nil); v.Missing != 100 {
		t.Errorf("a round of the first life is lost: %+v", v)
	}
	for _, s := range store.samples {
		clear(s)
	}
	if v := verify(t, srv.URL, state, nil); v.OK() || v.Short != int64(state.Trail.Kept()) {
		t.Errorf("all is lost: %+v", v)
	}
}

// gated stands before a server and can make it seem away.
type gated struct {
	*memStore
	shut atomic.Bool
	mu   sync.Mutex
	seen []float64 // what the server's counter said, look by look
}

func (g *gated) set(shut bool) { g.shut.Store(shut) }

// looks returns how often the counter was seen at n or above.
func (g *gated) looks(n float64) (looks int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, seen := range g.seen {
		if seen >= n {
			looks++
		}
	}
	return looks
}

func (g *gated) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if g.shut.Load() {
		panic(http.ErrAbortHandler)
	}
	g.memStore.mu.Lock()
	received := g.memStore.received
	g.memStore.mu.Unlock()
	g.memStore.ServeHTTP(w, r)
	if r.URL.Path == "/metrics" {
		g.mu.Lock()
		g.seen = append(g.seen, received)
		g.mu.Unlock()
	}
}

func TestGraphiteSentBefore(t *testing.T) {
	store := newMemStore()
	srv := store.serve(t)
	l := smallGraphite(t, store.listen(t, "127.0.0.1:0").Addr().String(), srv.URL, pace.Timing{Rounds: 4})
	l.Agents.Connections = 1
	state, _, err := l.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range store.samples {
		delete(s, state.Timeline.Ms(3))
	}
	for before, missing := range map[uint64]int64{300: 0, 310: 10, 400: 100} {
		v := verify(t, srv.URL, state, func(v *SampleVerifier) { v.SentBefore = before })
		if v.Missing != missing || v.Short != max(0, int64(before)-300) {
			t.Errorf("sent before %d: %+v", before, v)
		}
	}
}

func TestGraphiteUDP(t *testing.T) {
	t.Parallel()
	store := newMemStore()
	srv := store.serve(t)
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 1<<16)
		for {
			n, _, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if n > send.DatagramBytes {
				t.Errorf("datagram of %d bytes", n)
			}
			store.mu.Lock()
			for line := range strings.Lines(string(buf[:n])) {
				store.line(line)
			}
			store.mu.Unlock()
		}
	}()
	l := smallGraphite(t, conn.LocalAddr().String(), srv.URL, pace.Timing{Rate: 2000, Rounds: 5})
	l.Agents.UDP = true
	state, report, err := l.Run(t.Context())
	_ = conn.Close()
	<-done
	if err != nil || report.Sent != 500 {
		t.Fatalf("%+v, %v", report, err)
	}
	// Datagrams may get lost; what the server has counted may not.
	if v := verify(t, srv.URL, state, nil); !v.OK() || v.CountedOf != int64(report.Received.Points) || v.Counted == 0 {
		t.Errorf("%+v", v)
	}
}

// TestBlockedServer takes a connection and never reads: the load must end when its time is over.
func TestBlockedServer(t *testing.T) {
	t.Parallel()
	// A small buffer, so that a slow machine fills it in time.
	small := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
	}}
	lis, err := small.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer lis.Close()
	l := smallGraphite(t, lis.Addr().String(), "", pace.Timing{Duration: 2 * time.Second, Start: time.Unix(1_000_000_000, 0)})
	if _, report, err := l.Run(t.Context()); err != nil || report.Lost == 0 {
		t.Errorf("%+v, %v", report, err)
	}
}
