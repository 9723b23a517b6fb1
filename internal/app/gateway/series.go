package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/shaledb/shale/internal/journal/state"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/known"
	"github.com/shaledb/shale/internal/store/topics"
	"github.com/shaledb/shale/internal/write/groups"
)

// series bounds the active series of tenants by what ingesters have counted some seconds ago. Until they have
// counted again, a tenant may create more. Known series are not held back, also those that this gateway has
// never seen: ingesters say which they are.
type series struct {
	most      func(tenant string) int64 // 0: no limit
	limits    func(tenant string) *groups.Limits
	announcer *known.Announcer
	brake     *brake // nil: nothing is refused for a lag of ingesters
	creation  creation
	trickle   creation // what passes while the brake refuses creation
	log       *slog.Logger
	unlisted  prometheus.Counter
	warned    atomic.Int64 // when the log last had a tenant that is not listed

	mu    sync.RWMutex
	epoch topics.Epoch
	of    map[int32]counted
	// lacking are the partitions that lack labels, until they are counted again.
	lacking map[int32]bool
	active  map[string]int64 // of all partitions
	groups  groupCounts
}

// counted is a count of a partition.
type counted struct {
	*state.Series
	at time.Time // when it came
}

// countAge is for how long a count holds. Ingesters repeat it each minute; without them, nothing is known.
const countAge = 5 * time.Minute

func newSeries(o *Options, announcer *known.Announcer) *series {
	s := &series{epoch: o.Epoch, most: o.SeriesOf, limits: o.GroupsOf, groups: newGroupCounts(), announcer: announcer, trickle: newTrickle(), of: map[int32]counted{}, lacking: map[int32]bool{}, active: map[string]int64{}, log: o.Logger,
		creation: creation{rates: o.Rates, gateways: int64(max(1, o.Gateways)), tenants: map[string]*spent{}}}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	f := promauto.With(o.Registerer)
	s.unlisted = f.NewCounter(prometheus.CounterOpts{
		Name: "shale_gateway_unlisted_series_total", Help: "Series that passed the limits on series because ingesters have not listed the series of the tenant, for example more than 131,072 in a partition.",
	})
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "shale_gateway_counted_series", Help: "Active series of all tenants, as ingesters have counted them some seconds ago.",
	}, func() (n float64) {
		s.mu.RLock()
		defer s.mu.RUnlock()
		for _, of := range s.active {
			n += float64(of)
		}
		return n
	})
	return s
}

// follow drops all counts, as those of an epoch that has ended.
func (s *series) follow(e *topics.Epoch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch = *e
	clear(s.of)
	clear(s.lacking)
	clear(s.active)
	s.groups = newGroupCounts()
}

// takeGroups takes the numbers of a partition by metrics and label sets.
func (s *series) takeGroups(r *state.Groups, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Partition.Epoch == s.epoch.Number && r.Partition.Number < s.epoch.Partitions {
		s.groups.take(r, now)
	}
}

// groupsOf returns the limits of a tenant on the series of metrics and label sets.
func (s *series) groupsOf(tenant string) *groups.Limits {
	if s.limits == nil {
		return &groups.Limits{}
	}
	return s.limits(tenant)
}

// listed reports whether new series of a tenant must be told from known ones, whatever the number of all is.
func (s *series) listed(tenant string) bool {
	return s.creation.rates.All > 0 || s.creation.rates.of(tenant) > 0 || !s.groupsOf(tenant).None()
}

// take takes the numbers of a partition.
func (s *series) take(r *state.Series, now time.Time) {
	number := r.Partition.Number
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Partition.Epoch != s.epoch.Number || number >= s.epoch.Partitions {
		return
	}
	s.drop(number)
	delete(s.lacking, number)
	for tenant, n := range r.Active {
		s.active[tenant] += n
	}
	s.of[number] = counted{r, now}
}

// expire drops the counts that were not repeated.
func (s *series) expire(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for number, c := range s.of {
		if now.Sub(c.at) > countAge {
			s.drop(number)
		}
	}
	s.groups.expire(now)
}

// forget drops the numbers of a partition that lacks labels. It is not counted while it does, and the labels
// of series that it knew are to pass.
func (s *series) forget(p state.Partition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.Epoch != s.epoch.Number || p.Number >= s.epoch.Partitions {
		return
	}
	s.drop(p.Number)
	s.lacking[p.Number] = true
}

// drop drops the numbers of a partition. mu must be held.
func (s *series) drop(partition int32) {
	before, ok := s.of[partition]
	if !ok {
		return
	}
	for tenant, n := range before.Active {
		if s.active[tenant] -= n; s.active[tenant] <= 0 {
			delete(s.active, tenant)
		}
	}
	delete(s.of, partition)
}

// Over is [write.Groups.Over]. Limits on numbers come first: what they refuse takes nothing of what may pass
// the brake, and gets their answer.
func (s *series) Over(_ context.Context, b *model.Batch, over func(label int)) error {
	why := s.brake.refused(refuseCreation)
	most := int64(0)
	if s.most != nil {
		most = s.most(b.Tenant)
	}
	var fresh, refused []int
	var number error
	if most > 0 || s.listed(b.Tenant) {
		fresh, refused, number = s.overNumbers(b, most)
	} else if why == nil {
		return nil
	}
	var passing, held []int
	if why != nil {
		passing = without(s.newToBrake(b), refused)
		allowed, _ := s.trickle.take(b.Tenant, len(passing), time.Now())
		passing, held = passing[:allowed], passing[allowed:]
	}
	fresh = without(fresh, held)
	allowed, rate := s.creation.take(b.Tenant, len(fresh), time.Now())
	late := fresh[allowed:]
	if why != nil {
		s.trickle.giveBack(b.Tenant, len(passing)-len(without(passing, late)))
	}
	for _, labels := range [][]int{refused, held, late} {
		for _, label := range labels {
			over(label)
		}
	}
	switch { // a sender repeats the request as long as this helps
	case len(held) > 0:
		return why
	case rate != nil:
		return rate
	}
	return number
}

// without returns the labels that are not in others. Both are in ascending order.
func without(labels, others []int) []int {
	if len(others) == 0 {
		return labels
	}
	var left []int
	for _, label := range labels {
		if _, found := slices.BinarySearch(others, label); !found {
			left = append(left, label)
		}
	}
	return left
}

// overNumbers applies the limits on how many series a tenant has, of all and by group. It returns the label
// sets of new series that they allow and those that they refuse, each in ascending order.
func (s *series) overNumbers(b *model.Batch, most int64) (allowed, refused []int, _ error) {
	fresh, active := s.fresh(b, most)
	if most > 0 && active >= most {
		if len(fresh) == 0 {
			return nil, nil, nil
		}
		return nil, fresh, &model.LimitError{Limit: "limits.tenant-series", Tenant: true, Text: fmt.Sprintf(
			"refused %d of %d new series: tenant %s has %d active series and may have %d; drop unneeded series or labels, or raise the limit",
			len(fresh), b.Labels.Len(), b.Tenant, active, most)}
	}
	if l := s.groupsOf(b.Tenant); !l.None() {
		return s.overGroups(b, l, fresh)
	}
	return fresh, nil, nil
}

// fresh returns the label sets of a batch whose series neither this gateway nor an ingester knows, and how
// many active series the tenant has. It is asked only for tenants with a limit.
func (s *series) fresh(b *model.Batch, most int64) (labels []int, active int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	active = s.active[b.Tenant]
	if active < most && !s.listed(b.Tenant) {
		return nil, active
	}
	labels, unlisted := s.freshLocked(b)
	if unlisted > 0 {
		s.passed(b.Tenant, unlisted)
	}
	return labels, active
}

// freshLocked returns the label sets of a batch whose series are new, and how many may be new.
func (s *series) freshLocked(b *model.Batch) (labels []int, unlisted int) {
	for label, i := range b.Labels.Series {
		k := b.Keys[i]
		if s.announcer.Has(b.Tenant, b.Signal, k) {
			continue
		}
		may, listed := s.mayBeKnown(b.Tenant, k)
		if !listed {
			unlisted++
		}
		if !may {
			labels = append(labels, label)
		}
	}
	return labels, unlisted
}

// unlistedEvery is how often the log names a tenant whose series pass for lack of a list.
const unlistedEvery = time.Minute

// passed counts series that pass whatever the limits are.
func (s *series) passed(tenant string, n int) {
	s.unlisted.Add(float64(n))
	now := time.Now().UnixNano()
	if last := s.warned.Load(); now-last > int64(unlistedEvery) && s.warned.CompareAndSwap(last, now) {
		s.log.Warn("the limits on series do not apply to a tenant: ingesters have not listed its series, so new ones cannot be distinguished from known ones",
			"tenant", tenant, "series", n)
	}
}

// newToBrake returns the label sets of a batch whose series neither this gateway has announced nor ingesters
// list. Those of a partition that lacks labels are not among them: its ingester goes on only with these, and
// then the brake goes off.
func (s *series) newToBrake(b *model.Batch) (fresh []int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for label, i := range b.Labels.Series {
		k := b.Keys[i]
		p := topics.PartitionOf(k, s.epoch.Partitions)
		f := s.of[p].known(b.Tenant)
		if !s.lacking[p] && !(f != nil && f.Has(k.Lo)) && !s.announcer.Has(b.Tenant, b.Signal, k) {
			fresh = append(fresh, label)
		}
	}
	return fresh
}

// known returns the filter of a tenant; nil: there is none.
func (c counted) known(tenant string) state.Filter {
	if c.Series == nil {
		return nil
	}
	return c.Known[tenant]
}

// mayBeKnown reports whether an ingester may know a series, and whether one has said which it knows. mu must
// be held.
func (s *series) mayBeKnown(tenant string, k model.Key) (may, listed bool) {
	of, ok := s.of[topics.PartitionOf(k, s.epoch.Partitions)]
	if !ok {
		return true, false // no ingester has counted it lately
	}
	if of.Active[tenant] == 0 {
		return of.More, !of.More
	}
	f, filtered := of.Known[tenant]
	return !filtered || f.Has(k.Lo), filtered
}
