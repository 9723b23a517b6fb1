package replicas

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// keeper is a table with room for ten spares of 100 bytes.
type keeper struct {
	*Table
	t   *testing.T
	now time.Time
}

func newKeeper(t *testing.T) *keeper {
	t.Helper()
	k := &keeper{t: t, now: time.Unix(1_700_000_000, 0)}
	var err error
	k.Table, err = Open(Options{
		Settings: Settings{ClusterLabel: "cluster", ReplicaLabel: "__replica__", Failover: 30 * time.Second, MaxClusters: 3},
		Now:      func() time.Time { return k.now }, SpareBytes: 1000, Registerer: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func (k *keeper) judge(tenant, replica string) Verdict {
	return k.Judge(tenant, []byte("c"), []byte(replica))
}

// send keeps a request of a replica that is not elected.
func (k *keeper) send(tenant, replica string, newest int64) {
	k.t.Helper()
	v := k.judge(tenant, replica)
	if v.Spare == nil {
		k.t.Fatalf("%s is elected", replica)
	}
	k.Keep(v.Spare, []byte(replica), Spare{Request: fmt.Sprint(replica, newest), Bytes: 100, Newest: newest})
}

func (k *keeper) wantBytes(want int64) {
	k.t.Helper()
	if got := testutil.ToFloat64(k.metrics.spareBytes); got != float64(want) || k.spareBytes != want {
		k.t.Errorf("spares take %v bytes, want %d", got, want)
	}
}

// due takes all requests that are due.
func (k *keeper) due(c *Cluster) (all []string) {
	for {
		s, ok := k.Due(c)
		if !ok {
			return all
		}
		all = append(all, s.Request.(string))
	}
}

func (k *keeper) want(what string, got []string, want ...string) {
	k.t.Helper()
	if !slices.Equal(got, want) {
		k.t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestSpares: what the leader has not reached is kept, and is due when its replica is elected.
func TestSpares(t *testing.T) {
	k := newKeeper(t)
	c := k.judge("t", "a").Cluster
	k.Stored(&Verdict{Cluster: c}, 10)
	for _, newest := range []int64{9, 11, 12, 13} {
		k.send("t", "b", newest)
	}
	k.send("t", "other", 13)
	k.wantBytes(400) // 9 has been reached
	if k.Stored(&Verdict{Cluster: c}, 11) {
		t.Error("requests are due while nobody was elected")
	}
	k.wantBytes(300)
	k.now = k.now.Add(30 * time.Second)
	if v := k.judge("t", "b"); v.Cluster != c || v.Until != 11 {
		t.Errorf("elected: %+v", v)
	}
	if !k.Stored(&Verdict{Cluster: c}, 14) {
		t.Error("nothing is due")
	}
	s, ok := k.Due(c)
	if !ok {
		t.Fatal("nothing is due")
	}
	k.PutBack(c, s)
	k.want("due", k.due(c), "b13", "b12")
	k.wantBytes(0) // those of the third one have been reached
	k.send("t", "a", 15)
	k.now = k.now.Add(2 * time.Hour)
	k.mu.Lock()
	k.forgetLocked(k.now)
	k.mu.Unlock()
	k.wantBytes(0)
	k.Keep(c, []byte("a"), Spare{Bytes: 100, Newest: 99})
	k.PutBack(c, s)
	k.wantBytes(0)
}

// TestSparesAreBounded: the cluster that holds the most loses its oldest requests.
func TestSparesAreBounded(t *testing.T) {
	k := newKeeper(t)
	greedy, modest := k.judge("greedy", "a").Cluster, k.judge("modest", "a").Cluster
	for newest := range int64(20) {
		k.send("greedy", "b", newest+1)
		if newest < 3 {
			k.send("modest", "b", newest+1)
		}
	}
	k.wantBytes(1000)
	if n := testutil.ToFloat64(k.metrics.evicted); n != 13 {
		t.Errorf("%v requests were forgotten", n)
	}
	k.Keep(greedy, []byte("b"), Spare{Bytes: 1001, Newest: 99})
	k.wantBytes(1000)
	k.now = k.now.Add(30 * time.Second)
	k.judge("greedy", "b")
	k.judge("modest", "b")
	k.want("of the greedy", k.due(greedy), "b14", "b15", "b16", "b17", "b18", "b19", "b20")
	k.want("of the modest", k.due(modest), "b1", "b2", "b3")
	k.wantBytes(0)
}

// TestTriesAreBounded: a kept request that cannot be stored is forgotten in the end.
func TestTriesAreBounded(t *testing.T) {
	k := newKeeper(t)
	c := k.judge("t", "a").Cluster
	k.send("t", "b", 11)
	k.now = k.now.Add(30 * time.Second)
	k.judge("t", "b")
	tries := 0
	for {
		s, ok := k.Due(c)
		if !ok {
			break
		}
		if tries++; tries > maxTries {
			t.Fatal("it is tried without end")
		}
		k.PutBack(c, s)
	}
	if n := testutil.ToFloat64(k.metrics.gaveUp); tries != maxTries || n != 1 {
		t.Errorf("%d tries, %v requests were given up", tries, n)
	}
	k.wantBytes(0)
}
