package relay

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/shaledb/shale/internal/carbonconf"
	"github.com/shaledb/shale/internal/write/graphite/route"
	"github.com/shaledb/shale/internal/write/graphite/segment"
	"github.com/shaledb/shale/test/ports"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// conf parses a section [relay].
func conf(t *testing.T, lines ...string) *route.Conf {
	t.Helper()
	f, err := carbonconf.Parse("carbon.conf", []byte("[relay]\nRELAY_METHOD = consistent-hashing\n"+strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	c, err := route.ParseConf(f, "")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func open(t *testing.T, fs vfs.FS, change ...func(*Options)) *Relay {
	t.Helper()
	o := Options{FS: fs, Dir: "/relay", QueueBytes: 64 << 20, Registerer: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler)}
	for _, c := range change {
		c(&o)
	}
	r, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	r.lotTime = time.Millisecond
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func use(t *testing.T, r *Relay, c *route.Conf) []*Queue {
	t.Helper()
	queues, leave, err := r.Use(c)
	if err != nil {
		t.Fatal(err)
	}
	leave()
	return queues
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 20 s", what)
		}
	}
}

// carbon is a destination that speaks lines. It counts how often it got each.
type carbon struct {
	ln net.Listener
	// serve handles a connection until its end.
	serve     func(*carbon, *net.TCPConn)
	accepting sync.WaitGroup
	work      sync.WaitGroup

	mu    sync.Mutex
	got   map[string]int
	conns []*net.TCPConn
}

// reads takes what it reads when the sender has closed its side.
func (c *carbon) reads(nc *net.TCPConn) {
	var text bytes.Buffer
	if _, err := text.ReadFrom(nc); err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for line := range strings.Lines(text.String()) {
		c.got[strings.TrimSpace(line)]++
	}
}

func listen(t *testing.T, serve func(*carbon, *net.TCPConn)) *carbon {
	t.Helper()
	return listenOn(t, "127.0.0.1:0", serve)
}

func listenOn(t *testing.T, address string, serve func(*carbon, *net.TCPConn)) *carbon {
	t.Helper()
	c := &carbon{serve: serve, got: map[string]int{}}
	c.start(t, address)
	t.Cleanup(c.kill)
	return c
}

// reserve returns an address on which nothing listens but the test.
func reserve(t *testing.T) string {
	t.Helper()
	addresses, err := ports.Reserve(1)
	if err != nil {
		t.Fatal(err)
	}
	return addresses[0]
}

func (c *carbon) start(t *testing.T, address string) {
	t.Helper()
	var err error
	if c.ln, err = net.Listen("tcp", address); err != nil {
		t.Fatal(err)
	}
	c.accepting.Go(func() {
		for {
			nc, err := c.ln.Accept()
			if err != nil {
				return
			}
			tcp := nc.(*net.TCPConn)
			c.mu.Lock()
			c.conns = append(c.conns, tcp)
			c.mu.Unlock()
			c.work.Go(func() {
				c.serve(c, tcp)
				tcp.Close()
				c.mu.Lock()
				c.conns = slices.DeleteFunc(c.conns, func(other *net.TCPConn) bool { return other == tcp })
				c.mu.Unlock()
			})
		}
	})
}

// kill closes everything at once, as the kernel does for a process that dies. The newest connections come
// first, so that a pause in between does not look like a process that lives on.
func (c *carbon) kill() {
	c.ln.Close()
	c.accepting.Wait() // a connection that was just accepted must not live on
	c.mu.Lock()
	for _, nc := range slices.Backward(c.conns) {
		nc.Close()
	}
	c.mu.Unlock()
	c.work.Wait()
}

// isNewest reports whether no connection was accepted after nc.
func (c *carbon) isNewest(nc *net.TCPConn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Index(c.conns, nc) == len(c.conns)-1
}

func (c *carbon) lines() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.got)
}

func (c *carbon) address() string { return c.ln.Addr().String() }

func (c *carbon) conf(t *testing.T) *route.Conf {
	t.Helper()
	return conf(t, "DESTINATION_PROTOCOL = line", "DESTINATIONS = "+c.address())
}

// add adds points and returns their lines.
func add(q *Queue, name string, n int) (lines []string) {
	for i := range n {
		q.Add([]byte(name), int64(i), float64(i)/2)
		lines = append(lines, fmt.Sprintf("%s %s %d", name, strconv.FormatFloat(float64(i)/2, 'f', -1, 64), i))
	}
	return lines
}

// expect waits until each line has come, and returns how many came twice.
func (c *carbon) expect(t *testing.T, want []string) (repeated int) {
	t.Helper()
	eventually(t, "all lines have come", func() bool {
		got := c.lines()
		return !slices.ContainsFunc(want, func(line string) bool { return got[line] == 0 })
	})
	for _, n := range c.lines() {
		repeated += n - 1
	}
	return repeated
}

func empty(t *testing.T, q *Queue) {
	t.Helper()
	eventually(t, "the queue is empty", func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.readyBytes+q.grows.bytes == 0 && len(q.ready)+len(q.pending) == 0
	})
}

func TestDelivers(t *testing.T) {
	c := listen(t, (*carbon).reads)
	fs := vfs.NewMem()
	r := open(t, fs)
	q := use(t, r, c.conf(t))[0]
	want := add(q, "a.b", 1000)
	want = append(want, add(q, "käse;a=b", 10)...)
	if repeated := c.expect(t, want); repeated != 0 || len(c.lines()) != len(want) {
		t.Errorf("%d of %d lines, %d repeated", len(c.lines()), len(want), repeated)
	}
	empty(t, q)
	files, err := fs.List(q.folder.Dir)
	if err != nil || len(files) != 0 {
		t.Errorf("files %v are left, error %v", files, err)
	}
	if sent, points := testutil.ToFloat64(q.count.sent), testutil.ToFloat64(q.count.points); sent != 1010 || points != 1010 {
		t.Errorf("%v of %v points are sent", sent, points)
	}
}

// TestLotsAreBounded: many points are many lots, in order.
func TestLotsAreBounded(t *testing.T) {
	c := listen(t, (*carbon).reads)
	r := open(t, vfs.NewMem())
	r.lotTime = time.Hour
	q := use(t, r, c.conf(t))[0]
	name := strings.Repeat("n", 1000)
	want := add(q, name, 3000)
	if err := r.Sync(); err != nil {
		t.Fatal(err)
	}
	var grows int
	eventually(t, "the sealed lots are sent", func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		grows = int(q.grows.points)
		return len(q.ready) == 0
	})
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(c.lines()); n != 3000-grows || n == 0 || grows == 0 {
		t.Errorf("%d lines were sent before the last lot was ripe, which has %d", n, grows)
	}
	r = open(t, q.folder.FS)
	use(t, r, c.conf(t))
	c.expect(t, want)
}

// TestLastLotRipens: a lot whose first points ended the one before is sent although no other point comes.
func TestLastLotRipens(t *testing.T) {
	c := listen(t, (*carbon).reads)
	r := open(t, vfs.NewMem())
	r.lotTime = 300 * time.Millisecond
	r.stop() // so that the test alone calls Sync
	r.work.Wait()
	q := use(t, r, c.conf(t))[0]
	var want []string
	for _, name := range []string{"a", "b"} {
		want = append(want, add(q, strings.Repeat(name, 1000), 700)...)
		if err := r.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	c.expect(t, want)
	empty(t, q)
}

// TestUnreadableLotIsReadAgain: an error of the system is not damage.
func TestUnreadableLotIsReadAgain(t *testing.T) {
	c := listen(t, (*carbon).reads)
	var failed atomic.Int64
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpOpen && strings.HasSuffix(op.Path, ".log") && failed.Add(1) <= 3 {
			return syscall.EMFILE
		}
		return nil
	}))
	r := open(t, fs)
	q := use(t, r, c.conf(t))[0]
	c.expect(t, add(q, "a", 100))
	empty(t, q)
	if n := failed.Load(); n < 4 {
		t.Errorf("%d attempts to read a lot, want more than the 3 that fail", n)
	}
	if n := testutil.ToFloat64(q.count.dropped[damaged]); n != 0 {
		t.Errorf("%v points are dropped as damaged", n)
	}
}

// TestQueueSurvives: what waits is sent by the next process, whether the first was closed or killed.
func TestQueueSurvives(t *testing.T) {
	for _, killed := range []bool{false, true} {
		address := reserve(t)
		fs := vfs.NewCrashableMem()
		r := open(t, fs)
		q := use(t, r, conf(t, "DESTINATION_PROTOCOL = line", "DESTINATIONS = "+address))[0]
		want := add(q, "a", 100)
		if err := r.Sync(); err != nil {
			t.Fatal(err)
		}
		var after vfs.FS = fs
		if killed {
			after = fs.CrashClone(vfs.CrashCloneCfg{})
		} else {
			want = append(want, add(q, "b", 100)...)
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		}
		r = open(t, after)
		q = use(t, r, conf(t, "DESTINATION_PROTOCOL = line", "DESTINATIONS = "+address))[0]
		q.mu.Lock()
		got := q.readyPoints
		q.mu.Unlock()
		if got != int64(len(want)) {
			t.Errorf("killed %v: %d points wait, want %d", killed, got, len(want))
		}
		listenOn(t, address, (*carbon).reads).expect(t, want)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestUnconfirmedLotsAreSentAgain: a destination that does not read everything, or that dies, gets the lot
// again.
func TestUnconfirmedLotsAreSentAgain(t *testing.T) {
	for name, fail := range map[string]func(c *carbon, nc *net.TCPConn){
		"closes at once":             func(_ *carbon, nc *net.TCPConn) {},
		"resets":                     func(_ *carbon, nc *net.TCPConn) { _ = nc.SetLinger(0) },
		"closes after a few bytes":   func(_ *carbon, nc *net.TCPConn) { _, _ = nc.Read(make([]byte, 10)) },
		"resets when it has read it": func(_ *carbon, nc *net.TCPConn) { _, _ = new(bytes.Buffer).ReadFrom(nc); _ = nc.SetLinger(0) },
		"dies when it has read it": func(c *carbon, nc *net.TCPConn) {
			if n, err := new(bytes.Buffer).ReadFrom(nc); n == 0 || err != nil {
				return
			}
			// The sender has made its next connection, which must not outlive this one.
			for end := time.Now().Add(20 * time.Second); c.isNewest(nc) && time.Now().Before(end); {
				time.Sleep(time.Millisecond)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			for _, other := range slices.Backward(c.conns) {
				other.Close()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			failures := 0
			c := listen(t, func(c *carbon, nc *net.TCPConn) {
				mu.Lock()
				fails := failures < 6
				failures++
				mu.Unlock()
				if fails {
					fail(c, nc)
				} else {
					c.reads(nc)
				}
			})
			r := open(t, vfs.NewMem())
			q := use(t, r, c.conf(t))[0]
			want := add(q, "a", 1000)
			c.expect(t, want)
			empty(t, q)
			if testutil.ToFloat64(q.count.failures) == 0 {
				t.Error("no failure is counted")
			}
		})
	}
}

// TestRestartsOfTheDestination kills the destination at random moments while points come. None is missing.
func TestRestartsOfTheDestination(t *testing.T) {
	address := reserve(t)
	c := listenOn(t, address, (*carbon).reads)
	r := open(t, vfs.NewMem())
	q := use(t, r, c.conf(t))[0]
	var want []string
	for round := range 10 {
		for i := range 20 {
			want = append(want, add(q, fmt.Sprintf("r%d.%d", round, i), 50)...)
			if err := r.Sync(); err != nil {
				t.Fatal(err)
			}
		}
		c.kill()
		c.start(t, address)
	}
	repeated := c.expect(t, want)
	if counted := testutil.ToFloat64(q.count.repeated); float64(repeated) > counted {
		t.Errorf("%d lines came twice, and %v are counted", repeated, counted)
	}
}

func TestFullQueueDropsAndSaysSo(t *testing.T) {
	address := reserve(t)
	var log bytes.Buffer
	r := open(t, vfs.NewMem(), func(o *Options) { o.QueueBytes, o.Logger = 100_000, slog.New(slog.NewTextHandler(&log, nil)) })
	q := use(t, r, conf(t, "DESTINATIONS = "+address+":a"))[0]
	add(q, "a", 20_000)
	dropped := testutil.ToFloat64(q.count.dropped[full])
	if dropped < 10_000 || dropped > 19_000 {
		t.Errorf("%v points are dropped", dropped)
	}
	if err := r.Close(); err != nil { // ends the writing of the log
		t.Fatal(err)
	}
	if s := log.String(); strings.Count(s, "is full") != 1 && strings.Count(s, "is full") != 2 || !strings.Contains(s, "destination="+address+":a") || !strings.Contains(s, "graphite.relay-queue") {
		t.Errorf("the log says %q", s)
	}
}

func TestFailingDisk(t *testing.T) {
	c := listen(t, (*carbon).reads)
	var failing sync.Map
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if _, yes := failing.Load("yes"); yes && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			return errors.New("the disk is full")
		}
		return nil
	}))
	r := open(t, fs)
	q := use(t, r, c.conf(t))[0]
	failing.Store("yes", true)
	want := add(q, "a", 100)
	eventually(t, "Sync fails", func() bool { return r.Sync() != nil })
	add(q, strings.Repeat("x", 1000), 3000)
	if n := testutil.ToFloat64(q.count.dropped[disk]); n == 0 {
		t.Error("points without room in memory are not counted")
	}
	failing.Delete("yes")
	c.expect(t, want)
	empty(t, q)
}

func TestDamagedLotIsSetAside(t *testing.T) {
	c := listen(t, (*carbon).reads)
	fs := vfs.NewMem()
	folder := segment.Folder{FS: fs, Dir: "/relay/" + strings.ReplaceAll(c.address(), ":", "+"), Format: format}
	if err := fs.MkdirAll("/relay", 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := folder.Open(); err != nil {
		t.Fatal(err)
	}
	for n, record := range map[uint64][]byte{1: []byte("damaged"), 2: appendPoint(nil, point{[]byte("good"), 1, 2})} {
		w, err := folder.Create(n, record)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	r := open(t, fs)
	use(t, r, c.conf(t))
	c.expect(t, []string{"good 2 1"})
	if _, err := fs.Stat(folder.Path(1) + ".damaged"); err != nil {
		t.Error(err)
	}
}

// TestDestinationsComeAndGo: the queue of a former destination waits until it is one again.
func TestDestinationsComeAndGo(t *testing.T) {
	address, second := reserve(t), listen(t, (*carbon).reads)
	r := open(t, vfs.NewMem())
	one := func(address string) *route.Conf {
		return conf(t, "DESTINATION_PROTOCOL = line", "DESTINATIONS = "+address)
	}
	q := use(t, r, one(address))[0]
	lost := add(q, "a", 10)
	queues, leave, err := r.Use(one(second.address()))
	if err != nil {
		t.Fatal(err)
	}
	other := queues[0]
	// Until leave, the former queue takes points, and Sync covers it.
	lost = append(lost, add(q, "between", 10)...)
	if err := r.Sync(); err != nil {
		t.Fatal(err)
	}
	q.mu.Lock()
	if n := q.pendingPoints + q.writing; n != 0 {
		t.Errorf("%d points of the former queue are not durable after Sync", n)
	}
	q.mu.Unlock()
	leave()
	second.expect(t, add(other, "b", 10))
	q.Add([]byte("late"), 1, 1)
	if n := testutil.ToFloat64(q.count.dropped[removed]); n != 1 {
		t.Errorf("%v points of a former destination are counted", n)
	}
	first := listenOn(t, address, (*carbon).reads)
	queues = use(t, r, conf(t, "DESTINATION_PROTOCOL = line", "DESTINATIONS = "+second.address()+":x, "+address))
	first.expect(t, lost)
	if queues[0] == other {
		t.Error("two instances share a queue")
	}
}

func TestCloseAgain(t *testing.T) {
	r := open(t, vfs.NewMem())
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Use(conf(t, "DESTINATIONS = a:1")); err == nil {
		t.Error("a closed relay is used")
	}
}

func TestFolderNamesAreApart(t *testing.T) {
	seen := map[string]string{}
	for _, d := range []route.Destination{{Host: "a", Port: 1}, {Host: "a", Port: 1, Instance: "b"}, {Host: "a.b", Port: 1}, {Host: "::1", Port: 2}, {Host: "::1:2", Port: 2}, {Host: "::1", Port: 2, Instance: "2"}} {
		name := folderName(d)
		if seen[name] != "" || strings.ContainsAny(name, "/:") {
			t.Errorf("%s and %s have the folder %s", d, seen[name], name)
		}
		seen[name] = d.String()
	}
	if diff := cmp.Diff("10.0.0.1+2004+a", folderName(route.Destination{Host: "10.0.0.1", Port: 2004, Instance: "a"})); diff != "" {
		t.Error(diff)
	}
}
