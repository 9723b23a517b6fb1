package known

import (
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
)

// Topic is how the keys of a log are divided among partitions.
type Topic struct {
	// Epoch grows with every change of the topic or of the number of its partitions.
	Epoch uint64
	// Partitions is a power of two. A key belongs to the partition of its last bits.
	Partitions uint32
}

// Partition returns the partition of a key.
func (t Topic) Partition(k model.Key) uint32 { return uint32(k.Lo) & (t.Partitions - 1) }

// AnnouncerOptions build an Announcer.
type AnnouncerOptions struct {
	// Bytes bounds the memory of the set.
	Bytes int64
	Topic Topic
	// Refresh is the age from which an announcement counts no more. The new owner of a partition reads the
	// labels of this time, so no announcement may count for longer.
	Refresh time.Duration
	// Now returns the time of day in Unix nanoseconds, and the nanoseconds on a clock that is never set; nil
	// means the machine's clocks.
	Now        func() (wall, steady int64)
	Registerer prometheus.Registerer
}

// Announcer tells a gateway which series' labels must travel with their next rows: those of each series whose
// labels the log has not acknowledged lately. It is safe for concurrent use.
//
// Time is counted in ticks of 1/60 of Refresh. The mark of a series is the tick in which the record that
// announced it was sent. A wrong "unannounced" costs a label set; a wrong "announced" must be impossible.
// So the time that passes is never counted too low (see clock), and if sweeps stay out for too long, the
// announcer forgets everything.
type Announcer struct {
	o       AnnouncerOptions
	tick    int64 // nanoseconds
	set     *Set
	tenants tenantIDs
	lookups sync.Pool // of *Lookup
	metrics *announcerMetrics
	clock   *clock
	sweeps  sync.Mutex // one at a time

	mu    sync.RWMutex // held for reading while the set is used; guards the rest
	topic Topic
	// swept is the tick of the last sweep. No mark was older than maxTicks then.
	swept int64
	// resets and forgets number what was forgotten: everything, and some partitions.
	resets, forgets uint64
	// forgotten holds for each partition the number of the last time that it was forgotten.
	forgotten []uint64
}

const (
	// refreshTicks is how many ticks Refresh has. A mark of n ticks ago may be n+1 ticks old, and another tick
	// is left for rows that reach the log late, and for clocks that are slow.
	refreshTicks = 60
	maxTicks     = refreshTicks - 2
	// mostUnswept is after how many ticks without a sweep marks can no longer be told apart: they repeat
	// after [ticks].
	mostUnswept = ticks - 2*refreshTicks
)

// NewAnnouncer returns an Announcer that knows no series. Its owner calls Advance about once a tick, which is
// Refresh / 60, and Close when nothing uses it any more.
func NewAnnouncer(o AnnouncerOptions) (*Announcer, error) {
	if err := o.Topic.check(); err != nil {
		return nil, err
	}
	if o.Refresh < time.Second {
		return nil, fmt.Errorf("%w: labels cannot be announced every %v; the least is 1s", model.ErrInvalid, o.Refresh)
	}
	if o.Now == nil {
		o.Now = machineClocks
	}
	set, err := New(o.Bytes)
	if err != nil {
		return nil, err
	}
	a := &Announcer{o: o, tick: int64(o.Refresh) / refreshTicks, set: set, topic: o.Topic}
	a.forgotten = make([]uint64, o.Topic.Partitions)
	a.lookups.New = func() any { return new(Lookup) }
	a.clock = newClock(o.Now)
	a.metrics = newAnnouncerMetrics(o.Registerer, set)
	return a, nil
}

// Close frees the memory of the set.
func (a *Announcer) Close() { a.set.Close() }

func (t Topic) check() error {
	if t.Partitions == 0 || t.Partitions&(t.Partitions-1) != 0 {
		return fmt.Errorf("%w: a topic has a power of two of partitions, not %d", model.ErrInvalid, t.Partitions)
	}
	return nil
}

// now returns the number of the current tick.
func (a *Announcer) now() int64 { return a.clock.now() / a.tick }

// mark returns a tick as it stands in the set.
func mark(tick int64) uint8 { return uint8(tick%ticks) + 1 }

// begin locks the announcer for reading and returns the current tick. Before, it forgets everything if
// nothing was swept for too long.
func (a *Announcer) begin() int64 {
	for {
		a.mu.RLock()
		if n := a.now(); n-a.swept <= mostUnswept {
			return n
		}
		a.mu.RUnlock()
		a.mu.Lock()
		a.tickLocked()
		a.mu.Unlock()
	}
}

// tickLocked is begin for a caller that holds the lock for writing.
func (a *Announcer) tickLocked() int64 {
	n := a.now()
	if n-a.swept > mostUnswept {
		a.resetLocked("clock")
		n = a.swept
	}
	return n
}

// resetLocked forgets everything, and what is on its way. Lookups wait for it: it is rare, and writes 10
// bytes a series.
func (a *Announcer) resetLocked(reason string) {
	a.resets++
	a.metrics.forgotten.WithLabelValues(reason).Add(float64(a.set.drop(
		func(uint16, uint64) bool { return true }, signalOf)))
	a.swept = a.now() // forgetting much may take more ticks than may pass without a sweep
}

// Resolve appends to dst the indexes into b.Keys of the series whose labels must travel with the batch,
// ascending. It never fails.
func (a *Announcer) Resolve(b *model.Batch, dst []uint32) ([]uint32, error) {
	now := a.begin()
	defer a.mu.RUnlock()
	id, ok := a.tenants.id(b.Tenant, b.Signal)
	if !ok {
		for i := range b.Keys {
			dst = append(dst, uint32(i))
		}
		return dst, nil
	}
	l := a.lookups.Get().(*Lookup)
	defer a.lookups.Put(l)
	return a.set.unannounced(l, id, b.Signal, b.Keys, mark(now), maxTicks, dst), nil
}

// Has reports whether a series was announced about as lately as Refresh says.
func (a *Announcer) Has(tenant string, s model.Signal, k model.Key) bool {
	a.begin()
	defer a.mu.RUnlock()
	id, ok := a.tenants.id(tenant, s)
	return ok && a.set.Has(id, s, k)
}

// Moment is what an announcement needs to know of the time before its record was sent.
type Moment struct {
	resets, forgets uint64
	tick            int64
}

// Moment returns the present moment. A producer takes it before it sends the first part of a batch.
func (a *Announcer) Moment() Moment {
	now := a.begin()
	defer a.mu.RUnlock()
	return Moment{a.resets, a.forgets, now}
}

// Announced says that the log has acknowledged records with the labels of all these series. They were sent
// after the moment. What was forgotten since then stays forgotten, since the announcement may have been
// before it.
func (a *Announcer) Announced(m Moment, tenant string, s model.Signal, keys []model.Key) {
	if len(keys) == 0 {
		return
	}
	a.metrics.announced.Add(float64(len(keys)))
	now := a.begin()
	defer a.mu.RUnlock()
	id, ok := a.tenants.id(tenant, s)
	if m.resets != a.resets || now-m.tick > maxTicks || !ok {
		return
	}
	if m.forgets != a.forgets {
		keys = a.unforgotten(m, keys)
	}
	l := a.lookups.Get().(*Lookup)
	defer a.lookups.Put(l)
	if n := a.set.announce(l, id, s, keys, mark(m.tick), mark(now)); n > 0 {
		a.metrics.crowded.Add(float64(n))
	}
}

// unforgotten returns the keys whose partitions were not forgotten since a moment.
func (a *Announcer) unforgotten(m Moment, keys []model.Key) []model.Key {
	var kept []model.Key
	for _, k := range keys {
		if a.forgotten[a.topic.Partition(k)] <= m.forgets {
			kept = append(kept, k)
		}
	}
	return kept
}

// Forget makes the series of partitions unannounced: their new owner lacks labels. It does
// nothing if they are partitions of another epoch than the topic's.
func (a *Announcer) Forget(epoch uint64, partitions ...uint32) {
	a.mu.Lock()
	if epoch != a.topic.Epoch {
		a.mu.Unlock()
		return
	}
	a.forgets++
	gone := make([]bool, a.topic.Partitions)
	for _, p := range partitions {
		if p < a.topic.Partitions {
			a.forgotten[p], gone[p] = a.forgets, true
		}
	}
	topic := a.topic
	a.mu.Unlock()
	// Announcements that began before have ended, and those that end from now on heed forgotten. So lookups
	// need not wait.
	a.metrics.forgotten.WithLabelValues("partition").Add(float64(a.set.drop(func(_ uint16, lo uint64) bool {
		return gone[topic.Partition(model.Key{Lo: lo})]
	}, signalOf)))
}

// SetTopic makes all series unannounced if the topic is another one than before: its partitions have no
// labels yet.
func (a *Announcer) SetTopic(t Topic) error {
	if err := t.check(); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if t == a.topic {
		return nil
	}
	a.topic = t
	a.forgotten = make([]uint64, t.Partitions)
	a.resetLocked("topic")
	return nil
}

// Advance drops the series whose announcements no longer count, which makes room for others. If it is not
// called for long, the announcer forgets everything.
func (a *Announcer) Advance() error {
	a.sweeps.Lock()
	defer a.sweeps.Unlock()
	// Announcements that began before have ended. Those that end during the sweep leave no mark that is too
	// old for it.
	a.mu.Lock()
	now, resets := a.tickLocked(), a.resets
	a.mu.Unlock()
	before := a.set.Len()
	if err := a.set.sweep(mark(now), maxTicks, maxTicks); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if resets == a.resets {
		a.swept = now
	}
	a.metrics.forgotten.WithLabelValues("age").Add(float64(max(0, before-a.set.Len())))
	return nil
}
