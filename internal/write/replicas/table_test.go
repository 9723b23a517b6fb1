package replicas

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// world is a table with a clock and a file system.
type world struct {
	*Table
	now time.Time
	fs  *vfs.MemFS
}

func newWorld(t *testing.T) *world {
	w := &world{now: time.Unix(1_700_000_000, 0), fs: vfs.NewCrashableMem()}
	w.open(t)
	return w
}

func (w *world) open(t *testing.T) {
	t.Helper()
	var err error
	w.Table, err = Open(Options{
		Settings: Settings{ClusterLabel: "cluster", ReplicaLabel: "__replica__", Failover: 30 * time.Second, MaxClusters: 3},
		FS:       w.fs, File: "REPLICAS", Now: func() time.Time { return w.now }, Registerer: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
}

// judge reports whether a replica is stored, and stores it then.
func (w *world) judge(tenant, cluster, replica string) bool {
	v := w.Judge(tenant, []byte(cluster), []byte(replica))
	if v.Cluster != nil {
		w.Stored(&v, 0)
	}
	return v.Cluster != nil
}

func (w *world) want(t *testing.T, what string, got, want bool) {
	t.Helper()
	if got != want {
		t.Errorf("%s: stored is %v", what, got)
	}
}

// TestElection: one replica of each tenant and cluster is stored, and another one once it has been silent.
func TestElection(t *testing.T) {
	w := newWorld(t)
	w.want(t, "the first", w.judge("t", "c", "a"), true)
	w.want(t, "the second", w.judge("t", "c", "b"), false)
	w.want(t, "another cluster", w.judge("t", "d", "b"), true)
	w.want(t, "another tenant", w.judge("u", "c", "b"), true)
	for range 10 {
		w.now = w.now.Add(20 * time.Second)
		w.want(t, "it goes on", w.judge("t", "c", "a"), true)
		w.want(t, "the other does too", w.judge("t", "c", "b"), false)
	}
	w.now = w.now.Add(29 * time.Second)
	w.want(t, "not yet", w.judge("t", "c", "b"), false)
	w.now = w.now.Add(time.Second)
	w.want(t, "the leader has been silent", w.judge("t", "c", "b"), true)
	w.want(t, "it is back", w.judge("t", "c", "a"), false)
	if n := testutil.ToFloat64(w.metrics.elections); n != 4 {
		t.Errorf("%v elections", n)
	}
	// A clock that is set back does not end the term.
	w.now = w.now.Add(-time.Hour)
	w.want(t, "an hour earlier", w.judge("t", "c", "b"), true)
	w.want(t, "an hour earlier, the other", w.judge("t", "c", "a"), false)
}

// TestUntil: a new leader does not repeat what the one before has written, however their clocks differ.
func TestUntil(t *testing.T) {
	w := newWorld(t)
	until := func(replica string) int64 {
		return (w.Judge("t", []byte("c"), []byte(replica)).Until - w.now.UnixNano()) / int64(time.Second)
	}
	v := w.Judge("t", []byte("c"), []byte("a"))
	if v.Until != 0 {
		t.Errorf("the first leader may write from %d", v.Until)
	}
	w.Stored(&v, w.now.UnixNano())
	w.Stored(&v, w.now.Add(-time.Minute).UnixNano()) // late samples
	w.now = w.now.Add(40 * time.Second)
	if got := until("b"); got != -40 {
		t.Errorf("the second leader may write from %d s", got)
	}
	w.Stored(&v, w.now.Add(10*time.Minute).UnixNano()) // its clock is wrong
	w.now = w.now.Add(40 * time.Second)
	if got := until("a"); got != 30 {
		t.Errorf("the third leader may write from %d s", got)
	}
}

// TestBounds: a tenant has a bounded number of clusters, and those that have ended make room.
func TestBounds(t *testing.T) {
	w := newWorld(t)
	for i := range 3 {
		w.want(t, "a cluster", w.judge("t", fmt.Sprint(i), "a"), true)
	}
	v := w.Judge("t", []byte("3"), []byte("a"))
	if v.Cluster != nil || !strings.Contains(v.Refused, "has 3 HA pairs") || !strings.Contains(v.Refused, "ha.max-clusters is 3") {
		t.Errorf("one too many: %+v", v)
	}
	w.want(t, "another tenant", w.judge("u", "3", "a"), true)
	w.now = w.now.Add(50 * time.Minute)
	w.judge("t", "1", "a")
	w.now = w.now.Add(11 * time.Minute)
	w.want(t, "two have ended", w.judge("t", "3", "a"), true)
	if n := testutil.ToFloat64(w.metrics.clusters); n != 2 {
		t.Errorf("%v clusters are left", n)
	}
	_, err := Open(Options{Settings: Settings{ClusterLabel: "x", ReplicaLabel: "x"}, Registerer: prometheus.NewRegistry()})
	if err == nil {
		t.Error("one label for both is accepted")
	}
}

// TestRestart: after a restart the leader has the whole time again, and no sample is repeated.
func TestRestart(t *testing.T) {
	w := newWorld(t)
	v := w.Judge("t", []byte("c"), []byte("b"))
	w.Stored(&v, w.now.UnixNano())
	if err := w.save(); err != nil {
		t.Fatal(err)
	}
	begin := w.now
	w.now = w.now.Add(time.Hour)
	w.open(t)
	w.want(t, "the other replica is first", w.judge("t", "c", "a"), false)
	w.now = w.now.Add(20 * time.Second)
	w.want(t, "the leader", w.judge("t", "c", "b"), true)
	w.now = w.now.Add(30 * time.Second)
	if v := w.Judge("t", []byte("c"), []byte("a")); v.Cluster == nil || v.Until != begin.UnixNano() {
		t.Errorf("after a failover: %+v", v)
	}
	// Nothing has changed on the disk: a crash forgets the failover, and the leader of before has its time.
	w.fs = w.fs.CrashClone(vfs.CrashCloneCfg{})
	w.open(t)
	w.want(t, "after a crash", w.judge("t", "c", "a"), false)

	f, err := w.fs.Create("REPLICAS", "test")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = f.Write([]byte("{broken"))
	_ = f.Close()
	w.open(t)
	w.want(t, "with a broken file", w.judge("t", "c", "a"), true)
}

// TestRun: an election is saved at once, and what has been stored within seconds.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.Run(ctx) }()
		saved := func() []row {
			synctest.Wait()
			w.fs = w.fs.CrashClone(vfs.CrashCloneCfg{})
			rows, err := (&Table{o: Options{FS: w.fs, File: "REPLICAS"}}).read()
			if err != nil {
				t.Fatal(err)
			}
			return rows
		}
		v := w.Judge("t", []byte("c"), []byte("a"))
		if rows := saved(); len(rows) != 1 || rows[0].Replica != "a" {
			t.Errorf("after an election: %v", rows)
		}
		fs := w.o.FS.(*vfs.MemFS)
		w.Judge("t", []byte("c"), []byte("a"))
		w.Stored(&v, 7)
		time.Sleep(saveEvery + time.Second)
		synctest.Wait()
		w.fs = fs
		if rows := saved(); len(rows) != 1 || rows[0].Newest != 7 {
			t.Errorf("after a while: %v", rows)
		}
		stop()
		<-done
	})
}

// TestReached: one sample from the future does not say that a replica has reached it, unless all are ahead.
func TestReached(t *testing.T) {
	v := &Verdict{Now: 100}
	for _, x := range []struct {
		times []int64
		want  int64
	}{{nil, 0}, {[]int64{90}, 90}, {[]int64{90, 95, 91}, 95}, {[]int64{90, 900, 95}, 95}, {[]int64{900, 95}, 95}, {[]int64{900, 110, 120}, 110}, {[]int64{100, 101}, 100}} {
		got := int64(0)
		for _, at := range x.times {
			got = v.Reached(got, at)
		}
		if got != x.want {
			t.Errorf("%v: %d, want %d", x.times, got, x.want)
		}
	}
	w := newWorld(t)
	c := w.Judge("t", []byte("c"), []byte("a")).Cluster
	w.Stored(&Verdict{Cluster: c}, w.now.Add(time.Hour).UnixNano())
	w.Stored(&Verdict{Cluster: c}, w.now.Add(-time.Second).UnixNano())
	if c.newest != w.now.UnixNano() {
		t.Errorf("a leader with samples from now is taken to be %s ahead", time.Duration(c.newest-w.now.UnixNano()))
	}
}
