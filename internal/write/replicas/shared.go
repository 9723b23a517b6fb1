package replicas

import (
	"fmt"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

const (
	// maxShared bounds the clusters of all tenants that processes tell each other about.
	maxShared = 10_000
	// maxName bounds the names in a record, in bytes.
	maxName = 256
	// confirmWithin is how long a request waits until the leader of its cluster is known.
	confirmWithin = 10 * time.Second
	// claimEvery is how often a record is written again that has not come back.
	claimEvery = time.Second
	// unseen is the offset of the last record of a cluster that has none.
	unseen = -1
)

// Record names the leader of a cluster. All processes read the same records in the same order.
type Record struct {
	Tenant, Cluster string
	// Replica is empty for a cluster that has been silent for so long that it is forgotten.
	Replica string
	// Claim says that the writer knew another leader, or none.
	Claim bool
	// After is the offset of the last record of the cluster that the writer had read; -1: of none.
	After int64
	// Silent is for how long the leader had not written then.
	Silent time.Duration
	// Newest and Until are those of the [Cluster].
	Newest, Until int64
	// By names the process that wrote the record, and At is when the leader wrote, by the clock of that process.
	By string
	At time.Duration
}

// lead is what a process knows of a cluster from records.
type lead struct {
	// last is the offset of the last record.
	last int64
	// told says that a record was read. Then only records end the cluster: a process that forgot it by itself
	// would elect against the others.
	told bool
	// confirmed is a time at which the leader has written, of which the others know: a record that says so has
	// come back.
	confirmed time.Time
	// sure says that the leader follows from the order of records. At first, only the last one before a
	// compaction is known, which may be one that does not count. The others soon write a right one.
	sure bool
	// since is when this process read the first record.
	since time.Time
	// wrote says that the leader has written here since the last record of this process, and saidNewest what
	// that had as Newest.
	wrote      bool
	saidNewest int64
	// wrong says that the last record, which is all that compaction keeps, names another replica.
	wrong bool
	// asked is when this process last asked to be confirmed; zero: it has an answer.
	asked time.Time
	// vouched is when this process last said that the leader writes although nothing of that is stored yet, and
	// owing says that the others have read so. Then it does not say so again.
	vouched time.Time
	owing   bool
	// changed is closed by the next record; nil: no request waits.
	changed chan struct{}
}

// Shared is a table whose leaders many processes agree on. A leader counts once a record that names it has
// come back, and it was the first one after those that its writer knew: so the order of the records decides.
//
// A process stores samples of a leader for half of the failover time after a moment that others know of. They
// elect another one after the whole time, so that two replicas are never stored at one time. The half that is
// left is for samples on their way to Kafka.
type Shared struct {
	*Table
	put    func(*Record)
	forget func(tenant, cluster string)
	by     string
	began  time.Time
	opened time.Time // when it began with the log of records
	closed chan struct{}
	close  sync.Once

	lost, undecided, ignored prometheus.Counter
}

// SharedOptions build a Shared.
type SharedOptions struct {
	Options
	// By is a name that no other process has, not even the same one after a restart.
	By string
	// Put writes a record, and Forget removes those of a cluster. They do not wait.
	Put    func(*Record)
	Forget func(tenant, cluster string)
}

// NewShared returns a table without leaders. Whoever reads the records tells it of each.
func NewShared(o SharedOptions) (*Shared, error) {
	o.File = ""
	t, err := Open(o.Options)
	if err != nil {
		return nil, err
	}
	f := promauto.With(o.Registerer)
	return &Shared{
		Table: t, put: o.Put, forget: o.Forget, by: o.By, began: t.o.Now(), opened: t.o.Now(), closed: make(chan struct{}),
		lost:      f.NewCounter(prometheus.CounterOpts{Name: "shale_ha_lost_claims_total", Help: "Elections that this gateway requested and lost to another gateway."}),
		undecided: f.NewCounter(prometheus.CounterOpts{Name: "shale_ha_undecided_requests_total", Help: "Requests that were refused with 503 because the state topic did not say in time which replica leads."}),
		ignored:   f.NewCounter(prometheus.CounterOpts{Name: "shale_ha_ignored_records_total", Help: "Records of HA pairs that were not used because there are too many pairs."}),
	}, nil
}

// Judge says whether a replica is the leader of its cluster. If that is not known, it waits for the order of
// the records, for a few seconds at most.
func (s *Shared) Judge(tenant string, cluster, replica []byte) Verdict {
	return s.judge(tenant, cluster, replica, s.decide)
}

// JudgeKept is Judge for a request that was kept. It elects no replica, and does not say that the leader is
// alive: a leader that has stopped must not stay by what it sent before.
func (s *Shared) JudgeKept(tenant string, cluster, replica []byte) Verdict {
	return s.judge(tenant, cluster, replica, s.decideKept)
}

func (s *Shared) judge(tenant string, cluster, replica []byte, decide func(tenant, cluster, replica string) (Verdict, <-chan struct{})) Verdict {
	if len(cluster) > maxName || len(replica) > maxName || !utf8.Valid(cluster) || !utf8.Valid(replica) {
		return Verdict{Refused: fmt.Sprintf("names of the cluster and the replica of an HA pair are UTF-8 of up to %d bytes at gateways, got %.40q and %.40q", maxName, cluster, replica)}
	}
	var late <-chan time.Time
	for {
		v, wait := decide(tenant, string(cluster), string(replica))
		if wait == nil {
			return v
		}
		if late == nil {
			late = time.After(confirmWithin)
		}
		select {
		case <-wait:
			continue
		case <-time.After(claimEvery): // the record may be lost
			continue
		case <-late:
		case <-s.closed:
		}
		s.undecided.Inc()
		if v.Undecided != "" {
			return v
		}
		return Verdict{Undecided: fmt.Sprintf("the state topic has not confirmed within %s which replica of the HA pair %.40q is stored", confirmWithin, cluster)}
	}
}

// decide returns the verdict, or a channel that is closed when more may be known. It does not take a request
// for a sign of life, as it may be one that cannot be stored.
func (s *Shared) decide(tenant, cluster, replica string) (Verdict, <-chan struct{}) {
	now := s.o.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.tenants[tenant][cluster]
	if c == nil {
		if s.clusters >= maxShared {
			s.forgetLocked(now)
		}
		if s.clusters >= maxShared {
			return Verdict{Refused: fmt.Sprintf("there are %d HA pairs of all tenants, and gateways keep no more", maxShared)}, nil
		}
		var refused string
		if c, refused = s.addLocked(tenant, cluster, now); c == nil {
			return Verdict{Refused: refused}, nil
		}
		c.seen, c.lead.last = now, unseen
	}
	silent := now.Sub(c.seen)
	switch {
	case c.replica == replica && s.confirmedLocked(c, now):
		return Verdict{Cluster: c, Until: c.until, Now: now.UnixNano(), replica: c.replica}, nil
	case c.replica != "" && c.replica != replica && silent < s.o.Failover:
		return Verdict{Spare: c, Now: now.UnixNano()}, nil
	case c.replica != replica && now.Sub(s.opened) < s.o.Failover/2:
		return Verdict{Undecided: fmt.Sprintf("this gateway has just begun to read the state topic. For %s it elects no replica, such as that of the HA pair %.40q: "+
			"other gateways may store one by a topic that was there before", s.o.Failover/2, cluster)}, c.lead.wait()
	}
	return Verdict{}, s.askLocked(c, now, func() {
		r := s.recordLocked(c, tenant, cluster, now)
		claim := r.Replica != replica
		if claim {
			r.Replica, r.Claim, r.Until = replica, true, s.untilLocked(c, now)
		}
		// A leader of which nothing could be stored since the last time leaves the others time to be elected.
		if claim || !c.lead.owing || silent >= 2*s.o.Failover {
			r.Silent, r.At = 0, now.Sub(s.began)
			c.lead.vouched = now
		}
		s.put(r)
	})
}

// decideKept is decide for a request that was kept.
func (s *Shared) decideKept(tenant, cluster, replica string) (Verdict, <-chan struct{}) {
	now := s.o.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.tenants[tenant][cluster]
	switch {
	case c == nil || c.replica != replica:
		return Verdict{}, nil
	case s.confirmedLocked(c, now):
		return Verdict{Cluster: c, Until: c.until, Now: now.UnixNano(), replica: c.replica}, nil
	case now.Sub(c.seen) >= s.o.Failover/2: // then a record about it would allow nothing
		return Verdict{Undecided: fmt.Sprintf("the replica of the HA pair %.40q that leads has stopped", cluster)}, nil
	}
	return Verdict{}, s.askLocked(c, now, func() { s.put(s.recordLocked(c, tenant, cluster, now)) })
}

// confirmedLocked says that samples of the leader may be stored.
func (s *Shared) confirmedLocked(c *Cluster, now time.Time) bool {
	return c.lead.sure && !c.lead.confirmed.IsZero() && now.Sub(c.lead.confirmed) < s.o.Failover/2
}

// askLocked writes a record unless one is on its way, and returns a channel that the next record closes.
func (s *Shared) askLocked(c *Cluster, now time.Time, put func()) <-chan struct{} {
	settling := c.replica != "" && !c.lead.sure && now.Sub(c.lead.since) < s.speakEvery()
	if !settling && (c.lead.asked.IsZero() || now.Sub(c.lead.asked) >= claimEvery) {
		c.lead.asked = now
		put()
	}
	return c.lead.wait()
}

// wait returns a channel that the next record closes.
func (l *lead) wait() <-chan struct{} {
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.changed
}

// Stored is [Table.Stored]. The others are told of it.
func (s *Shared) Stored(v *Verdict, newest int64) (due bool) {
	s.mu.Lock()
	if c := v.Cluster; c.replica == v.replica {
		c.lead.wrote, c.lead.owing = true, false
	}
	s.mu.Unlock()
	return s.Table.Stored(v, newest)
}

// untilLocked returns up to which time a leader that is elected now may not write.
func (s *Shared) untilLocked(c *Cluster, now time.Time) int64 {
	return min(c.newest, now.Add(max(s.o.Failover, minSilence)).UnixNano())
}

// recordLocked returns what is known of a cluster.
func (s *Shared) recordLocked(c *Cluster, tenant, cluster string, now time.Time) *Record {
	return &Record{
		Tenant: tenant, Cluster: cluster, Replica: c.replica, After: c.lead.last, Silent: max(0, now.Sub(c.seen)),
		Newest: c.newest, Until: c.until, By: s.by, At: c.seen.Sub(s.began),
	}
}

// Take is told of each record, in their order.
func (s *Shared) Take(r *Record, offset int64) {
	now := s.o.Now()
	seen := now.Add(-min(max(0, r.Silent), 2*forgetAfter))
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.tenants[r.Tenant][r.Cluster]
	if c == nil {
		if s.clusters >= 2*maxShared { // each process refuses them before
			s.ignored.Inc()
			return
		}
		c = s.placeLocked(r.Tenant, r.Cluster)
		c.lead.last = unseen
	}
	own, next := r.By == s.by, r.After == c.lead.last
	switch {
	case c.replica == "":
		c.replica, c.seen, c.newest, c.until = r.Replica, seen, r.Newest, r.Until
		c.lead.since = now
		s.electedLocked(r, "")
	case c.replica == r.Replica:
		if seen.After(c.seen) {
			c.seen = seen
		}
		c.reach(r.Newest, now)
		c.lead.saidNewest = max(c.lead.saidNewest, r.Newest) // all are told
		s.trimLocked(c)
	case next || c.lead.last == unseen || !c.lead.sure && !r.Claim:
		before := c.replica
		// This process may know of newer samples than the one that asked.
		c.until = max(r.Until, s.untilLocked(c, now))
		c.replica, c.seen, c.newest = r.Replica, seen, max(c.newest, r.Newest)
		c.lead.confirmed, c.lead.wrote = time.Time{}, false
		s.electedLocked(r, before)
		s.takeOverLocked(c)
	default:
		c.lead.wrong = true
		if own {
			s.lost.Inc()
		}
	}
	if c.lead.last == unseen && !next { // the first one since a restart is not the first of all
		c.lead.sure, c.lead.since = false, now
	}
	c.lead.sure = c.lead.sure || next
	if c.replica == r.Replica && c.lead.sure {
		c.lead.wrong = false
		if at := s.began.Add(r.At); own && at.After(c.lead.confirmed) {
			c.lead.confirmed = at
			c.lead.owing = c.lead.owing || at.Equal(c.lead.vouched)
		}
	}
	c.lead.heard(offset, own)
}

// Restart says that further records are those of another log, which may have none. The leaders stay until
// that one names others, and it is told of them. Nothing is stored before it confirms them. None is elected
// before those are silent that others may store by the log before.
func (s *Shared) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened = s.o.Now()
	for _, of := range s.tenants {
		for _, c := range of {
			c.lead = lead{last: unseen, sure: c.replica != "", wrong: c.replica != "", changed: c.lead.changed}
		}
	}
}

// heard wakes the requests that wait for a record.
func (l *lead) heard(offset int64, own bool) {
	l.last, l.told = offset, true
	if own {
		l.asked = time.Time{}
	}
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// electedLocked looks after what is due to another leader. The process whose record counted says so.
func (s *Shared) electedLocked(r *Record, before string) {
	if r.By == s.by && r.Replica != "" {
		s.o.Logger.Info("elected a replica of an HA pair", "tenant", r.Tenant, "cluster", r.Cluster, "replica", r.Replica, "before", before)
		s.metrics.elections.Inc()
	}
	select {
	case s.elected <- struct{}{}:
	default:
	}
}

// TakeEnd is told that the records of a cluster were removed. One that has a leader again stays, and the
// others are told of it once more.
func (s *Shared) TakeEnd(tenant, cluster string, offset int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.tenants[tenant][cluster]
	switch {
	case c == nil:
		return
	case c.replica == "":
		s.removeLocked(tenant, cluster, c)
		s.metrics.clusters.Set(float64(s.clusters))
	default:
		c.lead.wrong = true
	}
	c.lead.heard(offset, false)
}

// removeLocked forgets a cluster.
func (s *Shared) removeLocked(tenant, cluster string, c *Cluster) {
	of := s.tenants[tenant]
	delete(of, cluster)
	if len(of) == 0 {
		delete(s.tenants, tenant)
	}
	s.forgetSparesLocked(c)
	s.clusters--
}

// Close ends the waits of requests.
func (s *Shared) Close() { s.close.Do(func() { close(s.closed) }) }

// speak writes what others do not know yet, and forgets clusters that have been silent for long.
func (s *Shared) speak() {
	now := s.o.Now()
	var records []*Record
	var ended [][2]string
	s.mu.Lock()
	for tenant, of := range s.tenants {
		for name, c := range of {
			l := &c.lead
			switch {
			case now.Sub(c.seen) > forgetAfter && l.last == unseen: // no replica could be elected
				s.removeLocked(tenant, name, c)
			case now.Sub(c.seen) > forgetAfter && c.replica == "":
				ended = append(ended, [2]string{tenant, name})
			case now.Sub(c.seen) > forgetAfter: // unless it is elected meanwhile, it has no leader any more
				r := s.recordLocked(c, tenant, name, now)
				r.Replica, r.Claim = "", true
				records = append(records, r)
			case c.replica != "" && l.sure && (l.wrong || l.wrote || c.newest > l.saidNewest && !l.confirmed.IsZero()):
				l.wrote, l.saidNewest = false, c.newest
				records = append(records, s.recordLocked(c, tenant, name, now))
			}
		}
	}
	s.metrics.clusters.Set(float64(s.clusters))
	s.mu.Unlock()
	for _, r := range records {
		s.put(r)
	}
	for _, e := range ended {
		s.forget(e[0], e[1])
	}
}
