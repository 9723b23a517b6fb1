package replicas

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// topic is a log of records with the delays and losses of a network, and with compaction.
type topic struct {
	r   *rand.Rand
	now time.Time
	log []entry
	// held are records on their way, by process; these keep their order.
	held map[string][]entry
	// bad says that the network delays and loses a lot.
	bad bool
	// made counts how often the topic was made again. What is on its way to the one before is lost.
	made int
}

// entry is a record in the log; one without a record ends its cluster.
type entry struct {
	*Record
	cluster string
	offset  int64
	at      time.Time // when it arrives
	gone    bool      // by compaction
	topic   int       // the one that it is sent to
}

// gateway is a process of the topic.
type gateway struct {
	*Shared
	by    string
	next  int       // what it reads next
	until time.Time // before, it reads nothing
	pings []ping
	topic int // that it has opened
	// broken says that it can append nothing.
	broken bool
}

// ping is a sample that is not acknowledged yet.
type ping struct {
	v  Verdict
	at time.Time
}

const (
	testFailover = 6 * time.Second
	testLag      = time.Minute // after which records are compacted
)

func (w *topic) open(t *testing.T, by string) *gateway {
	t.Helper()
	g := &gateway{by: by, topic: w.made}
	send := func(r *Record, cluster string) {
		delay := w.r.IntN(100)
		if w.bad {
			delay = w.r.IntN(4000)
		}
		if !w.bad || w.r.IntN(5) > 0 {
			w.held[by] = append(w.held[by], entry{Record: r, cluster: cluster, topic: g.topic, at: w.now.Add(time.Duration(delay) * time.Millisecond)})
		}
	}
	s, err := NewShared(SharedOptions{
		Options: Options{
			Settings: Settings{ClusterLabel: "cluster", ReplicaLabel: "__replica__", Failover: testFailover, MaxClusters: 3}, SpareBytes: 1000,
			Now: func() time.Time { return w.now }, Registerer: prometheus.NewRegistry(),
		},
		By: by, Put: func(r *Record) { send(r, r.Cluster) }, Forget: func(_, cluster string) { send(nil, cluster) },
	})
	if err != nil {
		t.Fatal(err)
	}
	g.Shared = s
	return g
}

// makeAgain loses the topic and makes it again. Gateways go on with it later.
func (w *topic) makeAgain() {
	w.log, w.made = nil, w.made+1
}

// reopen goes on with the topic that there is.
func (w *topic) reopen(g *gateway) {
	if g.topic < w.made {
		g.topic, g.next = w.made, 0
		g.Restart()
	}
}

// deliver appends what has arrived, lets gateways read, and compacts.
func (w *topic) deliver(all []*gateway) {
	for _, by := range slices.Sorted(maps.Keys(w.held)) {
		held := w.held[by]
		for len(held) > 0 && !held[0].at.After(w.now) {
			e := held[0]
			if e.topic < w.made {
				held = held[1:]
				continue
			}
			e.offset, e.at = int64(len(w.log)), w.now
			w.log, held = append(w.log, e), held[1:]
		}
		w.held[by] = held
	}
	for _, g := range all {
		if w.now.Before(g.until) || g.topic < w.made {
			continue
		}
		for ; g.next < len(w.log); g.next++ {
			switch e := w.log[g.next]; {
			case e.gone:
			case e.Record == nil:
				g.TakeEnd("t", e.cluster, e.offset)
			default:
				g.Take(e.Record, e.offset)
			}
		}
		lag := w.r.IntN(300)
		if w.bad && w.r.IntN(20) == 0 {
			lag = w.r.IntN(15_000)
		}
		g.until = w.now.Add(time.Duration(lag) * time.Millisecond)
	}
	if w.r.IntN(20) > 0 {
		return
	}
	last := map[string]int{}
	for i, e := range w.log {
		if w.now.Sub(e.at) > testLag && !e.gone {
			if before, ok := last[e.cluster]; ok {
				w.log[before].gone = true
			}
			last[e.cluster] = i
		}
	}
}

// TestSharedElection: however records are delayed and lost, gateways restarted, the topic made again, appends
// refused and pairs forgotten, no two replicas are stored within half of the failover time of each other. So
// it is with what was kept. Once all is well, the gateways agree, and a replica that writes is stored.
func TestSharedElection(t *testing.T) {
	changes := 0
	for seed := range uint64(80) {
		changes += electAtRandom(t, seed)
	}
	if changes < 80 {
		t.Errorf("the leader changed %d times in all", changes)
	}
}

func electAtRandom(t *testing.T, seed uint64) (changes int) {
	w := &topic{r: rand.New(rand.NewPCG(seed, 1)), now: time.Unix(1_700_000_000, 0), held: map[string][]entry{}}
	var all []*gateway
	for i := range 3 {
		all = append(all, w.open(t, fmt.Sprint(i)))
	}
	const step, length, calm = 50 * time.Millisecond, 180 * time.Second, 150 * time.Second
	replicas := []string{"a", "b", "c"}
	up := [3]bool{true, true, true}
	stored, at, count := "", time.Time{}, 0
	// store notes that a sample of a replica goes to the log of batches.
	store := func(what, replica string) {
		if stored != replica && stored != "" {
			changes++
			if gap := w.now.Sub(at); gap < testFailover/2 {
				t.Fatalf("seed %d: %s%s is stored %s after %s", seed, what, replica, gap, stored)
			}
		}
		stored, at, count = replica, w.now, count+1
	}
	began := w.now
	for w.now.Sub(began) < length {
		w.now = w.now.Add(step)
		quiet := w.now.Sub(began) > calm
		if w.bad = !quiet; quiet {
			up = [3]bool{false, true, false}
		} else if w.r.IntN(60) == 0 {
			up[w.r.IntN(3)] = w.r.IntN(3) == 0
		}
		if !quiet && w.r.IntN(1500) == 0 {
			w.makeAgain()
		}
		if !quiet && w.r.IntN(3000) == 0 { // all are silent for so long that they are forgotten
			w.now, began = w.now.Add(forgetAfter), began.Add(forgetAfter)
		}
		w.deliver(all)
		for i, g := range all {
			if quiet || w.r.IntN(100) == 0 {
				w.reopen(g)
			}
			if w.now.Sub(began)%time.Second == 0 {
				g.speak()
				for _, c := range g.owing() {
					s, _ := g.Due(c)
					if v, wait := g.decideKept("t", "c", s.replica); wait != nil || v.Undecided != "" {
						g.PutBack(c, s)
					} else if v.Cluster != nil {
						store("what was kept of ", s.replica)
						g.StoredKept(&v, s.Newest)
					}
				}
			}
			if w.r.IntN(100) == 0 {
				g.broken = !quiet && w.r.IntN(4) == 0
			}
			for len(g.pings) > 0 && w.now.Sub(g.pings[0].at) > 100*time.Millisecond {
				if !g.broken {
					g.Stored(&g.pings[0].v, g.pings[0].at.UnixNano())
				}
				g.pings = g.pings[1:]
			}
			if !quiet && w.r.IntN(400) == 0 {
				all[i] = w.open(t, fmt.Sprint(i, "/", w.now.UnixNano()))
			}
		}
		for i, replica := range replicas {
			if !up[i] || w.r.IntN(8) > 0 {
				continue
			}
			g := all[w.r.IntN(len(all))]
			v, _ := g.decide("t", "c", replica)
			if v.Spare != nil {
				g.Keep(v.Spare, []byte(replica), Spare{Bytes: 1, Newest: w.now.UnixNano()})
			}
			if v.Cluster == nil {
				continue
			}
			store("", replica)
			g.pings = append(g.pings, ping{v, w.now})
		}
	}
	if stored != "b" || w.now.Sub(at) > 5*time.Second || count < 20 {
		t.Errorf("seed %d: in the end %s was stored %s ago, %d in all", seed, stored, w.now.Sub(at), count)
	}
	for _, g := range all {
		g.until = time.Time{}
	}
	w.deliver(all)
	for _, g := range append(all, w.late(t)) {
		if c := g.tenants["t"]["c"]; c == nil || c.replica != "b" {
			t.Errorf("seed %d: gateway %s says %+v", seed, g.by, c)
		}
	}
	return changes
}

// late returns a gateway that reads the log as it is.
func (w *topic) late(t *testing.T) *gateway {
	g := w.open(t, "late")
	w.deliver([]*gateway{g})
	return g
}

// rig is a gateway on a network without delays.
func rig(t *testing.T) (*topic, *gateway, *gateway) {
	t.Helper()
	w := &topic{r: rand.New(rand.NewPCG(1, 1)), now: time.Unix(1_700_000_000, 0), held: map[string][]entry{}}
	first, second := w.open(t, "1"), w.open(t, "2")
	w.now = w.now.Add(testFailover / 2) // before, they elect none
	return w, first, second
}

// pass lets time pass, and all records arrive.
func (w *topic) pass(d time.Duration, all ...*gateway) {
	w.now = w.now.Add(d)
	for range 2 {
		for _, g := range all {
			g.until = time.Time{}
		}
		w.deliver(all)
		w.now = w.now.Add(150 * time.Millisecond)
	}
}

// TestFirstRecordDecides: of two gateways that elect, the one whose record is first is right, and the other
// one says so. Samples that the leader has written elsewhere are not repeated.
func TestFirstRecordDecides(t *testing.T) {
	w, first, second := rig(t)
	if v, wait := first.decide("t", "c", "a"); v.Cluster != nil || wait == nil {
		t.Fatal("a replica is stored that others do not know of")
	}
	second.decide("t", "c", "b")
	w.deliver(nil)
	w.pass(0, first, second)
	v, _ := first.decide("t", "c", "a")
	other, _ := second.decide("t", "c", "b")
	if w.log[0].By == "2" {
		v, other = other, v
		first, second = second, first
	}
	if v.Cluster == nil || other.Spare == nil || testutil.ToFloat64(second.lost) != 1 {
		t.Fatalf("%+v and %+v", v, other)
	}
	winner, loser := v.Cluster.replica, "b"
	if winner == "b" {
		loser = "a"
	}
	newest := w.now.UnixNano()
	first.Stored(&v, newest)
	first.speak()
	second.speak() // repairs the last record
	w.pass(0, first, second)
	if w.log[len(w.log)-1].Replica != winner {
		t.Error("the last record names the loser")
	}
	second.Keep(other.Spare, []byte(loser), Spare{Request: "kept", Bytes: 1, Newest: newest + 1})
	w.pass(testFailover-time.Second, first, second)
	if v, _ := second.decide("t", "c", loser); v.Spare == nil {
		t.Errorf("too early: %+v", v)
	}
	w.pass(time.Second, first, second)
	if _, wait := first.decide("t", "c", loser); wait == nil {
		t.Error("elected without the others")
	}
	w.pass(0, first, second)
	if v, _ := first.decide("t", "c", loser); v.Cluster == nil || v.Until != newest {
		t.Errorf("after the failover: %+v", v)
	}
	if all := second.owing(); len(all) != 1 || all[0] != other.Spare {
		t.Error("what the other gateway has kept is not due")
	}
}

// TestLateConfirmation: what comes back late says little of now, since the others may have elected by then.
func TestLateConfirmation(t *testing.T) {
	w, first, second := rig(t)
	first.decide("t", "c", "a")
	w.pass(testFailover/2, first, second)
	if v, wait := first.decide("t", "c", "a"); v.Cluster != nil || wait == nil {
		t.Errorf("stored after a late confirmation: %+v", v)
	}
	w.pass(0, first, second)
	if v, _ := first.decide("t", "c", "a"); v.Cluster == nil {
		t.Errorf("not stored after a new confirmation: %+v", v)
	}
}

// TestUnsure: the one record that compaction has left of a pair may be one that did not count. Nothing is
// stored for its leader until others, or the order of records, say that it leads.
func TestUnsure(t *testing.T) {
	w, g, _ := rig(t)
	take := func(replica string, claim bool, after, offset int64) {
		g.Take(&Record{Tenant: "t", Cluster: "c", Replica: replica, Claim: claim, After: after, By: "other"}, offset)
	}
	take("b", true, 7, 11)
	if _, wait := g.decide("t", "c", "b"); wait == nil || len(w.held["1"]) > 0 {
		t.Error("the leader of a lone record is stored, or stated")
	}
	take("c", true, 8, 12) // lost
	take("a", false, 9, 13)
	if c := g.tenants["t"]["c"]; c.replica != "a" || c.lead.sure {
		t.Errorf("after what another gateway says: %+v", c)
	}
	take("a", false, 13, 14)
	take("b", false, 9, 15) // late
	if c := g.tenants["t"]["c"]; c.replica != "a" || !c.lead.sure {
		t.Errorf("after a record that follows the one before: %+v", c)
	}
	g.decide("t", "c", "a")
	if len(w.held["1"]) != 1 {
		t.Error("the leader is not stated")
	}
}

// TestRestartOfLog: in another log, leaders stay, whoever names them first, and nothing is stored before. A
// gateway that finds nothing in it elects no one at once.
func TestRestartOfLog(t *testing.T) {
	w, first, second := rig(t)
	first.decide("t", "c", "a")
	w.pass(0, first, second)
	if v, _ := first.decide("t", "c", "a"); v.Cluster == nil {
		t.Fatal("a is not stored")
	}
	w.makeAgain()
	third := w.open(t, "3") // which knows nothing
	v, wait := third.decide("t", "c", "b")
	if wait == nil || len(w.held["3"]) > 0 || !strings.Contains(v.Undecided, "just begun") {
		t.Errorf("a gateway that has begun to read elects b: %+v", v)
	}
	w.reopen(first)
	w.reopen(second)
	if v, _ := first.decide("t", "c", "a"); v.Cluster != nil {
		t.Error("stored by what another log has confirmed")
	}
	if v, _ := second.decide("t", "c", "b"); v.Spare == nil {
		t.Errorf("the leader is forgotten: %+v", v)
	}
	puts := len(w.held["2"])
	if v, wait := second.decide("t", "elected elsewhere", "b"); wait == nil || v.Undecided == "" || len(w.held["2"]) > puts {
		t.Errorf("a replica is elected at once: %+v", v)
	}
	second.speak()
	w.pass(0, first, second, third)
	for _, g := range []*gateway{first, second, third} {
		if c := g.tenants["t"]["c"]; c.replica != "a" || !c.lead.sure {
			t.Errorf("gateway %s says %+v", g.by, c)
		}
	}
	if v, _ := first.decide("t", "c", "a"); v.Cluster == nil {
		t.Error("a is not stored by the new log")
	}
}

// TestOnlyAppendsAreLife: a leader whose requests reach a gateway that cannot append does not keep the other
// replica away. Alone, it is stored once the gateway can append again.
func TestOnlyAppendsAreLife(t *testing.T) {
	for _, alone := range []bool{false, true} {
		w, first, second := rig(t)
		first.broken = true
		write := func(g *gateway, replica string) bool {
			v, wait := g.decide("t", "c", replica)
			if wait != nil {
				w.pass(0, first, second)
				v, _ = g.decide("t", "c", replica)
			}
			if v.Cluster == nil || g.broken {
				return false
			}
			g.Stored(&v, w.now.UnixNano())
			return true
		}
		began, stored := w.now, false
		for w.now.Sub(began) < 4*testFailover && !stored {
			stored = write(first, "a")
			if !alone {
				stored = write(second, "b")
			} else if w.now.Sub(began) > testFailover {
				first.broken = false
			}
			w.pass(200*time.Millisecond, first, second)
			first.speak()
			second.speak()
		}
		if !stored {
			t.Errorf("nothing is stored for %s (a is alone: %t)", w.now.Sub(began), alone)
		}
		if took := w.now.Sub(began); !alone && took > 2*testFailover {
			t.Errorf("b is elected after %s", took)
		}
	}
}

// TestSharedBounds: pairs that are silent are forgotten everywhere, and names and numbers are bounded.
func TestSharedBounds(t *testing.T) {
	w, first, second := rig(t)
	for i := range 3 {
		first.decide("t", fmt.Sprint(i), "a")
	}
	w.pass(0, first, second)
	if v, _ := second.decide("t", "3", "a"); !strings.Contains(v.Refused, "ha.max-clusters is 3") {
		t.Errorf("one too many: %+v", v)
	}
	if v := first.Judge("t", []byte(strings.Repeat("c", maxName+1)), []byte("a")); !strings.Contains(v.Refused, "up to 256 bytes") {
		t.Errorf("a long name: %+v", v)
	}
	w.pass(forgetAfter-time.Second, first, second)
	first.decide("t", "1", "b")
	w.pass(2*time.Second, first, second)
	first.speak()
	second.speak()
	w.pass(time.Second, first, second)
	first.speak()
	w.pass(time.Second, first, second)
	for _, g := range []*gateway{first, second} {
		if g.clusters != 1 || g.tenants["t"]["1"] == nil {
			t.Errorf("%d pairs are left", g.clusters)
		}
	}
	if late := w.late(t); late.clusters != 1 || late.tenants["t"]["1"].replica != "b" {
		t.Errorf("after a restart, %d pairs are left", late.clusters)
	}
	second.TakeEnd("t", "1", 99) // of one that is alive
	if c := second.tenants["t"]["1"]; c == nil || !c.lead.wrong {
		t.Errorf("it was ended: %+v", c)
	}
	for i := range 2*maxShared + 5 {
		second.Take(&Record{Tenant: fmt.Sprint("t", i), Cluster: "c", Replica: "a"}, int64(100+i))
	}
	if second.clusters != 2*maxShared || testutil.ToFloat64(second.ignored) != 6 {
		t.Errorf("%d pairs are kept", second.clusters)
	}
	if v, _ := second.decide("new", "c", "a"); !strings.Contains(v.Refused, "10000 HA pairs of all tenants") {
		t.Errorf("one too many: %+v", v)
	}
}

// TestUndecided: without the topic, requests are refused after a while, and at once when the process stops.
func TestUndecided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		puts := 0
		s, err := NewShared(SharedOptions{
			Options: Options{Settings: Settings{ClusterLabel: "cluster", ReplicaLabel: "__replica__", Failover: testFailover, MaxClusters: 3}, Registerer: prometheus.NewRegistry()},
			Put:     func(*Record) { puts++ },
		})
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		v := s.Judge("t", []byte("c"), []byte("a"))
		if took := time.Since(begin); v.Undecided == "" || took != confirmWithin || puts < 4 {
			t.Errorf("%+v after %s, %d records", v, took, puts)
		}
		go func() {
			time.Sleep(time.Second / 2)
			s.Close()
		}()
		begin = time.Now()
		if v := s.Judge("t", []byte("c"), []byte("a")); v.Undecided == "" || time.Since(begin) > time.Second {
			t.Errorf("%+v after %s", v, time.Since(begin))
		}
	})
}

// TestKeptRequestsAreNoLife: a leader that has stopped does not stay by what it sent before, however often
// that is tried again. The other replica is elected as always.
func TestKeptRequestsAreNoLife(t *testing.T) {
	w, g, _ := rig(t)
	write := func(replica string) Verdict {
		v, wait := g.decide("t", "c", replica)
		if wait != nil {
			w.pass(0, g)
			v, _ = g.decide("t", "c", replica)
		}
		return v
	}
	write("a")
	g.Keep(write("b").Spare, []byte("b"), Spare{Request: "kept", Bytes: 1, Newest: 1})
	w.pass(testFailover, g)
	c := write("b").Cluster
	if c == nil {
		t.Fatal("b is not elected")
	}
	tries := 0
	stops := w.now
	for write("a").Cluster == nil {
		if w.now.Sub(stops) > 2*testFailover {
			t.Fatalf("a is not elected %s after b has stopped, with %d tries of what it sent before", w.now.Sub(stops), tries)
		}
		s, ok := g.Due(c)
		if !ok {
			t.Fatal("nothing is due")
		}
		v, wait := g.decideKept("t", "c", "b")
		if wait != nil {
			w.pass(0, g)
			v, _ = g.decideKept("t", "c", "b")
		}
		if v.Cluster != nil {
			tries++
		}
		g.PutBack(c, s)
		w.pass(500*time.Millisecond, g)
		g.speak()
	}
	if tries == 0 {
		t.Error("what was kept was never to be stored")
	}
	if v, wait := g.decideKept("t", "c", "b"); v != (Verdict{}) || wait != nil {
		t.Errorf("of a replica that leads no more: %+v", v)
	}
}

// TestFullTenantForgetsNothing: a gateway whose tenant has too many pairs does not forget by itself what
// others know, since it would elect another replica than they do.
func TestFullTenantForgetsNothing(t *testing.T) {
	w, first, second := rig(t)
	for i := range 3 { // as many as there may be
		second.decide("t", fmt.Sprint(i), "a")
	}
	w.pass(0, first, second)
	w.pass(forgetAfter+time.Second, first, second)
	if v, _ := first.decide("t", "one more", "x"); v.Refused == "" {
		t.Errorf("it is not refused: %+v", v)
	}
	first.decide("t", "0", "b")
	second.decide("t", "0", "a")
	w.pass(0, first, second)
	v, _ := first.decide("t", "0", "b")
	other, _ := second.decide("t", "0", "a")
	if v.Cluster != nil && other.Cluster != nil {
		t.Error("two replicas are stored at one time")
	}
	first.speak()
	second.speak()
	w.pass(time.Second, first, second)
	first.speak()
	w.pass(time.Second, first, second)
	if _, wait := first.decide("t", "one more", "x"); wait == nil {
		t.Error("there is no room after records have ended the others")
	}
}
