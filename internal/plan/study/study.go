package study

import (
	"context"
	"time"

	"github.com/shaledb/shale/internal/plan/cluster"
	"github.com/shaledb/shale/internal/plan/evict"
	"github.com/shaledb/shale/internal/plan/replay"
	"github.com/shaledb/shale/internal/plan/trace"
)

// Study is a question about a trace.
type Study struct {
	Trace *trace.Trace
	// Sizes are capacities in bytes of the real system, in ascending order.
	Sizes []float64
	// Policies are names of package evict, and [LRUShared].
	Policies []string
	// Delay is the time from a request to the bucket until the cache has the value.
	Delay time.Duration
	// Queue is the share of the capacity that the queue of Shale's tier on disk has.
	Queue float64
	// Workers is the number of caches to simulate at one time.
	Workers int
	// Target may ask for a size.
	Target Target
	// Node is what the cluster is made of; Gbps and IOPS replace what the trace needs, unless they are 0.
	Node       cluster.Node
	Gbps, IOPS float64
	// GetBudget is the requests a second that may refill a lost node; 0: no limit.
	GetBudget float64
}

// LRUShared is LRU with clients that share the fetches under way. The clients of memcached do not: each
// read of a value that is on its way is one more request to the bucket.
const LRUShared = "lru-shared"

// BoundName is the row of a bound that no policy can exceed.
const BoundName = "bound"

// DefaultPolicies returns the policies of the table.
func DefaultPolicies() []string {
	return []string{evict.LRU, LRUShared, evict.Extstore, evict.Sieve, evict.S3FIFO, evict.TinyLFU, evict.Shale, evict.Optimum}
}

// Row has the figures of a policy at a size, of the real system. Shares are between 0 and 1.
type Row struct {
	Policy string  `json:"policy"`
	Bytes  float64 `json:"bytes"`

	HitRatio      float64 `json:"hit_ratio"`
	FirstHitRatio float64 `json:"first_touch_hit_ratio"`
	ByteHitRatio  float64 `json:"byte_hit_ratio"`
	// Gets and PeakGets are requests a second to the bucket: the mean, and that of the worst minute.
	Gets     float64 `json:"gets_per_second"`
	PeakGets float64 `json:"peak_gets_per_second"`
	// Unread is the share of evictions of values that were not read since they were written, and PeakUnread the
	// most of them in an hour. Refused is the values an hour that a filter in front of the cache has dropped.
	Unread     float64 `json:"unread_evictions_ratio"`
	PeakUnread float64 `json:"peak_unread_evictions_per_hour"`
	Refused    float64 `json:"refused_per_hour"`
	// Turnovers is how often an hour the whole content is replaced.
	Turnovers     float64 `json:"turnovers_per_hour"`
	PeakTurnovers float64 `json:"peak_turnovers_per_hour"`
	// Written is the bytes a day that the medium takes, and DriveWrites this divided by its size.
	Written     float64 `json:"written_bytes_per_day"`
	DriveWrites float64 `json:"drive_writes_per_day"`
	// Gbps and IOPS are what the cache sends in the worst minute.
	Gbps float64 `json:"peak_gbps"`
	IOPS float64 `json:"peak_iops"`
	// GetDollars is the cost of the requests to the bucket a month.
	GetDollars float64 `json:"get_dollars_per_month"`
}

// Report is the result of a study.
type Report struct {
	Trace  string        `json:"trace"`
	Scale  float64       `json:"scale"`
	Events trace.Summary `json:"summary"`
	Young  []Young       `json:"young,omitempty"`
	Rows   []Row         `json:"rows"`
	Target *Met          `json:"target,omitempty"`
	Plan   *cluster.Plan `json:"plan,omitempty"`
	Loss   *cluster.Loss `json:"loss,omitempty"`
}

// Young is the share of the bytes of first reads that were younger than a time. A trace without ages has
// none.
type Young struct {
	Hours float64 `json:"hours"`
	Share float64 `json:"share"`
}

// Runs returns the number of requests that Run replays.
func (s *Study) Runs() int64 {
	return int64(len(s.Sizes)) * int64(len(s.Policies)) * int64(len(s.Trace.Requests))
}

// cases returns what to run, in the order of the rows.
func (s *Study) cases() (cases []replay.Case) {
	for _, size := range s.Sizes {
		for _, policy := range s.Policies {
			c := replay.Case{Policy: policy, Bytes: int64(size / s.Trace.Scale), Queue: s.Queue, DelayMs: s.Delay.Milliseconds(), Shared: true}
			switch policy {
			case evict.LRU, evict.Extstore:
				c.Shared = false
			case LRUShared:
				c.Policy = evict.LRU
			case evict.Optimum:
				c.DelayMs = 0
			}
			cases = append(cases, c)
		}
	}
	return cases
}

// Run runs the study. Progress is called with the number of requests that were replayed since the last call,
// by several goroutines.
func (s *Study) Run(ctx context.Context, progress func(requests int)) (*Report, error) {
	counts, err := replay.Grid(ctx, s.Trace, s.cases(), s.Workers, progress)
	if err != nil {
		return nil, err
	}
	r := &Report{Trace: s.Trace.Name, Scale: s.Trace.Scale, Events: s.Trace.Summarize()}
	for _, hours := range []float64{3, 24, 120} {
		if share, ok := s.Trace.Young(int32(hours * 3600)); ok {
			r.Young = append(r.Young, Young{hours, share})
		}
	}
	next := replay.NextRequests(s.Trace)
	units := make([]int64, len(s.Sizes))
	for i, size := range s.Sizes {
		units[i] = int64(size / s.Trace.Scale)
	}
	bounds := replay.Bound(s.Trace, next, units)
	for i, size := range s.Sizes {
		for j, policy := range s.Policies {
			r.Rows = append(r.Rows, s.row(policy, size, &counts[i*len(s.Policies)+j]))
		}
		reads := r.Events.Reads
		bound := replay.Counts{Reads: reads, Hits: bounds[i], Gets: reads - bounds[i]}
		r.Rows = append(r.Rows, s.row(BoundName, size, &bound))
	}
	s.plan(r)
	return r, nil
}

// row turns counts into the figures of the real system.
func (s *Study) row(policy string, size float64, c *replay.Counts) Row {
	hours := max(s.Trace.Hours(), 1e-9)
	perSecond := s.Trace.Scale / (hours * 3600)
	perMinute := s.Trace.Scale / 60
	gets := float64(c.Gets) * perSecond
	return Row{
		Policy: policy, Bytes: size,
		HitRatio: c.HitRatio(), FirstHitRatio: c.FirstHitRatio(), ByteHitRatio: c.ByteHitRatio(),
		Gets: gets, PeakGets: float64(c.PeakGets) * perMinute,
		Unread: c.UnreadShare(), PeakUnread: float64(c.PeakUnread) * s.Trace.Scale, Refused: float64(c.Refused) * s.Trace.Scale / hours,
		Turnovers: float64(c.EvictedBytes) * s.Trace.Scale / size / hours, PeakTurnovers: float64(c.PeakEvicted) * s.Trace.Scale / size,
		Written: float64(c.Written) * s.Trace.Scale / hours * 24, DriveWrites: float64(c.Written) * s.Trace.Scale / hours * 24 / size,
		Gbps: float64(c.PeakBytes) * perMinute * 8 / 1e9, IOPS: float64(c.PeakHits) * perMinute,
		GetDollars: cluster.GetDollars(gets),
	}
}

// plan finds the size of the target and the cluster for it, or for the largest size, by the policy of Shale
// or, without it, the first one.
func (s *Study) plan(r *Report) {
	curve := r.curve(evict.Shale)
	if len(curve) == 0 {
		curve = r.curve(s.Policies[0])
	}
	at := curve[len(curve)-1]
	if s.Target != (Target{}) {
		met := s.Target.meet(curve)
		r.Target = &met
		if !met.Reached {
			return
		}
		at = met.Row
	}
	need := cluster.Need{Bytes: at.Bytes, Gbps: at.Gbps, IOPS: at.IOPS}
	if s.Gbps > 0 {
		need.Gbps = s.Gbps
	}
	if s.IOPS > 0 {
		need.IOPS = s.IOPS
	}
	p := cluster.NewPlan(s.Node, need)
	reads := float64(r.Events.Reads) * s.Trace.Scale / max(s.Trace.Hours()*3600, 1e-9)
	load := cluster.Load{Reads: reads, HitRatio: 1 - at.Gets/max(reads, 1e-9), GetBudget: s.GetBudget}
	if r.Events.Reads > 0 {
		load.ValueBytes = float64(r.Events.ReadSize) / float64(r.Events.Reads)
	}
	loss := p.Lose(load)
	r.Plan, r.Loss = &p, &loss
}

// curve returns the rows of a policy, by size.
func (r *Report) curve(policy string) (rows []Row) {
	for _, row := range r.Rows {
		if row.Policy == policy {
			rows = append(rows, row)
		}
	}
	return rows
}
