package replicas

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"
)

// Settings are off by default. The tags make settings of the fields: see package config.
type Settings struct {
	ClusterLabel string        `name:"ha.cluster-label" default:"cluster" placeholder:"NAME" help:"Label that the Prometheus servers of one HA pair share. It is stored."`
	ReplicaLabel string        `name:"ha.replica-label" default:"__replica__" placeholder:"NAME" help:"Label by which the Prometheus servers of one HA pair differ. It is not stored."`
	Failover     time.Duration `name:"ha.failover-after" type:"time" default:"30s" placeholder:"TIME" min:"1s" max:"1h" help:"How long the elected replica of an HA pair may be silent before another one is elected. Longer than the interval at which it sends."`
	MaxClusters  int           `name:"ha.max-clusters" type:"count" default:"100" placeholder:"N" min:"1" max:"100000" help:"Most HA pairs of one tenant that have written within an hour. Series of further ones are refused."`
}

// forgetAfter is how long a cluster without samples is remembered.
const forgetAfter = time.Hour

// minSilence is for how long a new leader may have to drop samples at least, since the one before had a clock
// that is ahead of its own.
const minSilence = 30 * time.Second

// maxTenants bounds the tenants that have clusters.
const maxTenants = 100_000

// Options build a Table.
type Options struct {
	Settings
	// FS and File keep the table; an empty File keeps none.
	FS   vfs.FS
	File string
	// SpareBytes bounds the memory of requests of replicas that are not elected; 0: none are kept.
	SpareBytes int64
	Now        func() time.Time // nil: the clock of the machine
	Registerer prometheus.Registerer
	Logger     *slog.Logger
}

// Table has the leaders. It is safe for concurrent use.
type Table struct {
	o       Options
	metrics *metrics

	mu       sync.Mutex
	tenants  map[string]map[string]*Cluster
	clusters int
	unsaved  bool
	// holding are the clusters that have spares, of spareBytes together.
	holding    map[*Cluster]struct{}
	spareBytes int64
	// elected has capacity 1, and gets a token when the file should be written soon.
	elected chan struct{}
}

// Cluster is the state of the replicas of one cluster of a tenant. The mutex of the table guards its fields.
type Cluster struct {
	replica string
	// seen is when the leader wrote last, by the clock of this machine.
	seen time.Time
	// newest is the time of the newest stored sample, as Unix nanoseconds. until is what it was at the last
	// election: samples up to it are those of the leader before.
	newest, until int64

	spares spares
	// lead is for a [Shared].
	lead lead
	// forgotten says that the table does not have the cluster any more.
	forgotten bool
}

// Verdict says what becomes of a series.
type Verdict struct {
	// Cluster is that of the leader, to be told of what is stored; nil if the rows are dropped.
	Cluster *Cluster
	// Until is the time, in Unix nanoseconds, up to which samples have been written by the leader before.
	Until int64
	// Spare is the cluster if another replica is its leader.
	Spare *Cluster
	// Now is when it was said, in Unix nanoseconds; only for a leader, and a replica that is not.
	Now int64
	// Refused is why rows can not be stored at all; empty: the rows of another replica are, or will be.
	Refused string
	// Undecided is why it cannot be known now whether the rows are stored; empty: it is known. The sender is to
	// send them again.
	Undecided string

	replica string // of the leader
}

// Reached returns up to which time a replica has written, given what it was without a sample at time t; 0:
// there was no sample. One target with a clock that is ahead says nothing of the others. So the newest sample
// counts that is not ahead of this clock, and if all are, as of a replica with a wrong clock, the oldest.
func (v *Verdict) Reached(before, t int64) int64 {
	switch {
	case before == 0:
		return t
	case before > v.Now:
		return min(before, t)
	case t > v.Now:
		return before
	}
	return max(before, t)
}

// reach notes up to which time the leader has written. One that has samples from now has no clock that is
// ahead, so it is not taken to have reached a later time.
func (c *Cluster) reach(newest int64, now time.Time) {
	c.newest = max(c.newest, newest)
	if at := now.UnixNano(); newest != 0 && newest <= at {
		c.newest = min(c.newest, at)
	}
}

// Labels returns the names of the labels of cluster and replica.
func (t *Table) Labels() (cluster, replica string) { return t.o.ClusterLabel, t.o.ReplicaLabel }

// Judge says whether a replica is the leader of its cluster, and elects it if there is none. It does not take
// a request for a sign of life, as it may be one that cannot be stored: see [Table.Stored].
func (t *Table) Judge(tenant string, cluster, replica []byte) Verdict {
	now := t.o.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.tenants[tenant][string(cluster)]
	switch {
	case c == nil:
		var refused string
		if c, refused = t.addLocked(tenant, string(cluster), now); c == nil {
			return Verdict{Refused: refused}
		}
		t.electLocked(c, tenant, string(cluster), string(replica), now)
	case c.replica == string(replica):
	case now.Sub(c.seen) < t.o.Failover:
		return Verdict{Spare: c, Now: now.UnixNano()}
	default:
		// A sender with a clock far ahead must not silence its successor for long.
		c.until = min(c.newest, now.Add(max(t.o.Failover, minSilence)).UnixNano())
		t.electLocked(c, tenant, string(cluster), string(replica), now)
		t.takeOverLocked(c)
	}
	return Verdict{Cluster: c, Until: c.until, Now: now.UnixNano(), replica: c.replica}
}

// JudgeKept is Judge for a request that was kept. It elects no replica, and does not say that the leader is
// alive: a leader that has stopped must not stay by what it sent before.
func (t *Table) JudgeKept(tenant string, cluster, replica []byte) Verdict {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.tenants[tenant][string(cluster)]
	if c == nil || c.replica != string(replica) {
		return Verdict{}
	}
	return Verdict{Cluster: c, Until: c.until, Now: t.o.Now().UnixNano(), replica: c.replica}
}

func (t *Table) electLocked(c *Cluster, tenant, cluster, replica string, now time.Time) {
	t.o.Logger.Info("elected a replica of an HA pair", "tenant", tenant, "cluster", cluster, "replica", replica, "before", c.replica)
	c.replica, c.seen, t.unsaved = replica, now, true
	t.metrics.elections.Inc()
	select {
	case t.elected <- struct{}{}:
	default:
	}
}

// addLocked adds a cluster, or returns why there is no room for it.
func (t *Table) addLocked(tenant, name string, now time.Time) (*Cluster, string) {
	of := t.tenants[tenant]
	if len(of) >= t.o.MaxClusters || of == nil && len(t.tenants) >= maxTenants {
		t.forgetLocked(now)
		of = t.tenants[tenant]
	}
	switch {
	case len(of) >= t.o.MaxClusters:
		return nil, fmt.Sprintf("the tenant has %d HA pairs that wrote within %s, and ha.max-clusters is %d", len(of), forgetAfter, t.o.MaxClusters)
	case of == nil && len(t.tenants) >= maxTenants:
		return nil, fmt.Sprintf("%d tenants have HA pairs, and no more may", maxTenants)
	}
	return t.placeLocked(tenant, name), ""
}

// placeLocked adds a cluster.
func (t *Table) placeLocked(tenant, name string) *Cluster {
	of := t.tenants[tenant]
	if of == nil {
		of = make(map[string]*Cluster)
		t.tenants[tenant] = of
	}
	c := &Cluster{}
	of[name] = c
	t.clusters++
	t.metrics.clusters.Set(float64(t.clusters))
	return c
}

// forgetLocked drops clusters that have not written for long.
func (t *Table) forgetLocked(now time.Time) {
	for tenant, of := range t.tenants {
		for name, c := range of {
			if now.Sub(c.seen) > forgetAfter && !c.lead.told {
				delete(of, name)
				t.forgetSparesLocked(c)
				t.clusters--
				t.unsaved = true
			}
		}
		if len(of) == 0 {
			delete(t.tenants, tenant)
		}
	}
	t.metrics.clusters.Set(float64(t.clusters))
}

// Stored is told that rows of a leader are durable, and up to which time all that it has sent are, in Unix
// nanoseconds; 0: that is not known, or none had to be stored. It reports whether requests of the leader from
// before its election are due. Only this is a sign of life: a leader of which nothing can be stored, as with
// a clock that is far ahead, does not keep the others away.
func (t *Table) Stored(v *Verdict, newest int64) (due bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := v.Cluster; c.replica == v.replica {
		c.seen = t.o.Now()
	}
	return t.storedLocked(v.Cluster, newest)
}

// StoredKept is Stored for a request that was kept. It does not count as a sign of life.
func (t *Table) StoredKept(v *Verdict, newest int64) (due bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.storedLocked(v.Cluster, newest)
}

func (t *Table) storedLocked(c *Cluster, newest int64) (due bool) {
	t.unsaved = true
	c.reach(newest, t.o.Now())
	t.trimLocked(c)
	return len(c.spares.due) > 0
}

// Dropped counts samples that are not stored: those of a replica that is not elected, and those of a new
// leader that the one before has written.
func (t *Table) Dropped(other, repeated int) {
	t.metrics.other.Add(float64(other))
	t.metrics.repeated.Add(float64(repeated))
}

// metrics count elections and what they drop.
type metrics struct {
	elections, other, repeated  prometheus.Counter
	evicted, tookOver, gaveUp   prometheus.Counter
	clusters, saved, spareBytes prometheus.Gauge
}
