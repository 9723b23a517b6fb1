package promwrite

import (
	"encoding/binary"
	"slices"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/replicas"
)

// Elector says which replica of a cluster is stored.
type Elector interface {
	// Labels returns the names of the labels of cluster and replica.
	Labels() (cluster, replica string)
	Judge(tenant string, cluster, replica []byte) replicas.Verdict
	// JudgeKept is for a request that was kept.
	JudgeKept(tenant string, cluster, replica []byte) replicas.Verdict
	// Stored is told of rows that are durable, and of up to which time all are; 0: not of any. It reports
	// whether requests of the leader are due, which are to be stored.
	Stored(v *replicas.Verdict, newest int64) (due bool)
	// StoredKept is for a request that was kept.
	StoredKept(v *replicas.Verdict, newest int64) (due bool)
	Dropped(other, repeated int)
	Spares
}

// Spares keeps requests of replicas that are not elected.
type Spares interface {
	Keep(c *replicas.Cluster, replica []byte, s replicas.Spare)
	Due(c *replicas.Cluster) (replicas.Spare, bool)
	PutBack(c *replicas.Cluster, s replicas.Spare)
	TookOver()
}

var _ Elector = (*replicas.Table)(nil)

// reasonReplicas is the reason under which series of too many HA pairs are rejected.
const reasonReplicas = "too_many_ha_clusters"

// election is what a walk knows of the replicas of a request. The zero value judges nothing.
type election struct {
	elector                    Elector
	tenant                     string
	kept                       bool // the request is one that was kept
	clusterLabel, replicaLabel string

	// Series mostly come from one replica, so the last verdict is kept, with the names that it is of.
	judged           bool
	cluster, replica []byte
	last             replicas.Verdict
	// parts are the ranges of series in the batch that leaders have written.
	parts []electedPart
	// other counts samples of replicas that are not elected.
	other write.Counts
	// repeated counts rows of a leader that the one before has written.
	repeated write.Counts
	// spare is the cluster of these samples, and spareReplica their replica, if it is one only.
	spare        *replicas.Cluster
	spareReplica []byte
	mixed        bool
	newest       int64 // time of the newest of these samples
	// undecided is why it is not known which replica is stored; empty: it is known.
	undecided string
}

// electedPart are series of the batch that one leader has written.
type electedPart struct {
	verdict  replicas.Verdict
	from, to int
	newest   int64
}

func (e *election) start(elector Elector, tenant string, kept bool) {
	*e = election{elector: elector, tenant: tenant, kept: kept, cluster: e.cluster[:0], replica: e.replica[:0], parts: e.parts[:0], spareReplica: e.spareReplica[:0]}
	if elector != nil {
		e.clusterLabel, e.replicaLabel = elector.Labels()
	}
}

// judge returns the verdict on a series with both labels.
func (e *election) judge(cluster, replica []byte) replicas.Verdict {
	if e.undecided != "" {
		return replicas.Verdict{Undecided: e.undecided}
	}
	if !e.judged || string(e.cluster) != string(cluster) || string(e.replica) != string(replica) {
		e.cluster, e.replica = append(e.cluster[:0], cluster...), append(e.replica[:0], replica...)
		judge := e.elector.Judge
		if e.kept {
			judge = e.elector.JudgeKept
		}
		e.last, e.judged = judge(e.tenant, cluster, replica), true
		e.undecided = e.last.Undecided
	}
	return e.last
}

// elect decides on the rows of a series, whose labels of cluster and replica are given. It returns false if
// they are not stored.
func (w *walker) elect(s *seriesWalk, cluster, replica []byte) bool {
	v := w.election.judge(cluster, replica)
	switch {
	case v.Undecided != "": // the whole request is refused
		w.truncate(s)
		w.pending = w.pending[:0]
		return false
	case v.Refused != "":
		w.dropSeries(s, reasonReplicas, func() string { return v.Refused })
		return false
	case v.Cluster == nil:
		w.election.other.Add(w.added(s))
		if !w.election.kept {
			w.election.spareFor(&v, replica, w.batch.Samples.Times[s.samples:])
		}
		w.truncate(s)
		w.pending = w.pending[:0] // the leader's are reported
		return false
	}
	at, newest := len(w.batch.Keys), int64(0)
	for _, t := range w.batch.Samples.Times[s.samples:] {
		newest = v.Reached(newest, t)
	}
	parts := w.election.parts
	if n := len(parts); n > 0 && parts[n-1].verdict == v {
		parts[n-1].to = at + 1
		if newest != 0 {
			parts[n-1].newest = v.Reached(parts[n-1].newest, newest)
		}
		return true
	}
	w.election.parts = append(growParts(parts), electedPart{v, at, at + 1, newest})
	return true
}

// cutRepeated drops the rows that the leader before has written.
func (w *walker) cutRepeated() {
	e := &w.election
	any := false
	for i := range e.parts {
		any = any || e.parts[i].verdict.Until != 0
	}
	if any {
		part := 0
		w.batch.KeepRows(func(f model.Family, series, row int) bool {
			for part < len(e.parts) && series >= e.parts[part].to {
				part++
			}
			if part == len(e.parts) || series < e.parts[part].from || w.batch.Columns(f).Times[row] > e.parts[part].verdict.Until {
				return true
			}
			switch c := w.batch.Columns(f); {
			case f == model.Exemplars:
				e.repeated.Exemplars++
			case c.Kind(row) == model.KindHistogram:
				e.repeated.Histograms++
			default:
				e.repeated.Samples++
			}
			return false
		})
	}
	repeated := e.repeated.Samples + e.repeated.Histograms
	if n := e.other.Samples + e.other.Histograms; n > 0 || repeated > 0 {
		e.elector.Dropped(n, repeated)
	}
}

// stored tells the elector of rows that are durable, and returns the clusters of which requests are due. any
// says that some had to be stored, and all that no other rows wait to be sent again. Until none wait, it is
// not known up to which time the leader has written: the other replica may be the one that stores them.
func (e *election) stored(any, all bool) (due []*replicas.Cluster) {
	for i := range e.parts {
		p := &e.parts[i]
		newest := p.newest
		if !any || !all {
			newest = 0
		}
		tell := e.elector.Stored
		if e.kept {
			tell = e.elector.StoredKept
		}
		if c := p.verdict.Cluster; tell(&p.verdict, newest) && any && !slices.Contains(due, c) {
			due = append(due, c)
		}
	}
	return due
}

// electPlain decides on a series of version 1, and returns its labels without that of the replica.
func (w *walker) electPlain(s *seriesWalk, labels span) (_ span, stored bool) {
	e := &w.election
	var cluster, replica []byte
	all := model.Labels(w.bytes(labels))
	for name, value, rest, ok := all.Next(); ok; name, value, rest, ok = rest.Next() {
		if string(name) == e.clusterLabel {
			cluster = value
		} else if string(name) == e.replicaLabel {
			replica = value
		}
	}
	if cluster == nil || replica == nil {
		return labels, true
	}
	if !w.elect(s, cluster, replica) {
		return labels, false
	}
	w.keys.Reset()
	at := len(w.arena)
	// If the arena moves while it grows, the bytes of all stay where they were.
	for name, value, rest, ok := all.Next(); ok; name, value, rest, ok = rest.Next() {
		if string(name) != e.replicaLabel {
			w.arena = appendLabel(w.arena, name, value)
		}
	}
	for name, value, rest, ok := model.Labels(w.arena[at:]).Next(); ok; name, value, rest, ok = rest.Next() {
		w.keys.Label(name, value)
	}
	return span{uint32(at) | inArena, uint32(len(w.arena) - at)}, true
}

// electReferenced decides on a series of version 2, and takes the label of the replica out of its references.
func (w *walker) electReferenced(s *seriesWalk) (stored bool) {
	e, y, d := &w.election, &w.symbolic, w.decoded
	refs := y.series.list
	var cluster, replica []byte
	found := -1
	for i := 0; i+1 < len(refs); i += 2 {
		n, v := y.symbols[refs[i]], y.symbols[refs[i+1]]
		switch name := n.slice(d); {
		case v.size == 0:
		case string(name) == e.clusterLabel:
			cluster = v.slice(d)
		case string(name) == e.replicaLabel:
			replica, found = v.slice(d), i
		}
	}
	if cluster == nil || replica == nil {
		return true
	}
	if !w.elect(s, cluster, replica) {
		return false
	}
	y.series.list = append(refs[:found], refs[found+2:]...)
	at := len(w.arena)
	for _, ref := range y.series.list {
		w.arena = binary.AppendUvarint(w.arena, uint64(ref))
	}
	s.refs = span{uint32(at) | inArena, uint32(len(w.arena) - at)}
	return true
}
