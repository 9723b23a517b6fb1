package results

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/shaledb/shale/internal/model"
)

const (
	// bucketNanos is the interval of row times within which changes are not told apart.
	bucketNanos = int64(60e9)
	// maxBuckets and maxRanges bound what is known of the changes of a tenant. Beyond them all of its values
	// count as changed.
	maxBuckets = 4096
	maxRanges  = 64
	// maxTenants bounds the tenants whose values are kept.
	maxTenants = 1 << 16
)

// Changes numbers the changes of rows that kept values depend on. It is safe for concurrent use.
//
// A reader first says up to which time its values depend on rows, then notes the number of the last change,
// and then reads rows. A writer makes rows visible first, then takes a number, and then looks at how far
// readers have gone. So what a reader has not seen has a greater number than it has noted.
type Changes struct {
	last    atomic.Uint64 // the number of the last change
	adding  sync.Mutex    // of a tenant
	tenants [2]atomic.Pointer[map[string]*changed]
}

// changed is what has happened to the rows of one tenant and signal.
type changed struct {
	// edge is the time up to which values depend on rows.
	edge atomic.Int64

	mu      sync.Mutex
	all     uint64         // the last change of everything
	ranges  []changedRange // changes of many buckets
	buckets []changedBucket
}

type changedRange struct {
	model.TimeRange
	number uint64
}

type changedBucket struct {
	bucket int64
	number uint64
}

func (c *Changes) of(s model.Signal) *atomic.Pointer[map[string]*changed] {
	if s == model.Logs {
		return &c.tenants[1]
	}
	return &c.tenants[0]
}

// find returns what is known of a tenant, or nil.
func (c *Changes) find(tenant string, s model.Signal) *changed {
	all := c.of(s).Load()
	if all == nil {
		return nil
	}
	return (*all)[tenant]
}

// add returns what is known of a tenant from now on, or nil if there are too many.
func (c *Changes) add(tenant string, s model.Signal) *changed {
	if x := c.find(tenant, s); x != nil {
		return x
	}
	c.adding.Lock()
	defer c.adding.Unlock()
	at := c.of(s)
	known := map[string]*changed{}
	if all := at.Load(); all != nil {
		if x := (*all)[tenant]; x != nil {
			return x
		}
		if len(*all) == maxTenants {
			return nil
		}
		known = maps.Clone(*all)
	}
	x := &changed{}
	x.edge.Store(math.MinInt64)
	known[tenant] = x
	at.Store(&known)
	return x
}

// Applied notes that the rows of a batch can be seen. It costs a comparison for each row, and more only for
// rows that are late.
func (c *Changes) Applied(b *model.Batch) {
	x := c.find(b.Tenant, b.Signal)
	if x == nil {
		return
	}
	edge := x.edge.Load()
	for _, times := range [...][]int64{b.Samples.Times, b.Text.Times} {
		for i, t := range times {
			if t <= edge {
				x.late(c.last.Add(1), times[i:], edge)
				break
			}
		}
	}
}

// late notes a change of the buckets of those times that values depend on.
func (x *changed) late(number uint64, times []int64, edge int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	last := int64(math.MinInt64)
	for _, t := range times {
		if t > edge {
			continue
		}
		bucket := floorDiv(t, bucketNanos)
		if bucket == last {
			continue
		}
		last = bucket
		i, known := x.search(bucket)
		switch {
		case known:
			x.buckets[i].number = number
		case len(x.buckets) == maxBuckets:
			x.forget(number)
			return
		default:
			x.buckets = slices.Insert(x.buckets, i, changedBucket{bucket, number})
		}
	}
}

func (x *changed) search(bucket int64) (int, bool) {
	return slices.BinarySearchFunc(x.buckets, bucket, func(b changedBucket, bucket int64) int { return cmp.Compare(b.bucket, bucket) })
}

// forgetOldest makes the older half of the changes of ranges one of everything: what was evaluated since then
// has them. Processes that others ship for note a range with each ship. mu must be held.
func (x *changed) forgetOldest() {
	slices.SortFunc(x.ranges, func(a, b changedRange) int { return cmp.Compare(a.number, b.number) })
	half := len(x.ranges) / 2
	x.all = max(x.all, x.ranges[half-1].number)
	x.ranges = append(x.ranges[:0], x.ranges[half:]...)
}

// forget notes a change of everything. mu must be held.
func (x *changed) forget(number uint64) {
	x.all, x.ranges, x.buckets = number, nil, x.buckets[:0]
}

// Range notes that rows of a signal in a range have come or gone, as by a deletion or a block of another
// process. has says whether that concerns a tenant.
func (c *Changes) Range(s model.Signal, r model.TimeRange, has func(tenant string) bool) {
	all := c.of(s).Load()
	if all == nil || r.Min > r.Max {
		return
	}
	for tenant, x := range *all {
		if !has(tenant) || r.Min > x.edge.Load() {
			continue
		}
		number := c.last.Add(1)
		x.mu.Lock()
		if len(x.ranges) == maxRanges {
			x.forgetOldest()
		}
		x.ranges = append(x.ranges, changedRange{r, number})
		x.mu.Unlock()
	}
}

// shortRange is the length below which a range is noted as buckets, of which there may be more.
const shortRange = uint64(15 * bucketNanos)

// Rows notes that rows of a tenant in a range have come or gone. Many short ranges are told apart.
func (c *Changes) Rows(tenant string, s model.Signal, r model.TimeRange) {
	if uint64(r.Max)-uint64(r.Min) >= shortRange {
		c.Range(s, r, func(t string) bool { return t == tenant })
		return
	}
	if x := c.find(tenant, s); x != nil && r.Min <= x.edge.Load() {
		x.short(c.last.Add(1), r)
	}
}

// short notes a change of the buckets of a short range.
func (x *changed) short(number uint64, r model.TimeRange) {
	times := make([]int64, 0, 16)
	for t := r.Min; t < r.Max && r.Max-t > bucketNanos; t += bucketNanos {
		times = append(times, t)
	}
	x.late(number, append(times, max(r.Min, r.Max-bucketNanos), r.Max), math.MaxInt64)
}

// All notes that any rows may have come or gone.
func (c *Changes) All() {
	for i := range c.tenants {
		if all := c.tenants[i].Load(); all != nil {
			for _, x := range *all {
				number := c.last.Add(1)
				x.mu.Lock()
				x.forget(number)
				x.mu.Unlock()
			}
		}
	}
}

// watched is the tenants of a query.
type watched []*changed

// watch returns the tenants of a query, whose values depend on rows up to a time. It returns nil if there are
// too many tenants.
func (c *Changes) watch(tenants []string, s model.Signal, edge int64) watched {
	w := make(watched, 0, len(tenants))
	for _, tenant := range tenants {
		x := c.add(tenant, s)
		if x == nil {
			return nil
		}
		for old := x.edge.Load(); old < edge && !x.edge.CompareAndSwap(old, edge); old = x.edge.Load() {
		}
		w = append(w, x)
	}
	return w
}

// generation returns a number that grows with each change of rows in a range. Each change has a number of its
// own, so the greatest tells all.
func (w watched) generation(r model.TimeRange) (number uint64) {
	for _, x := range w {
		x.mu.Lock()
		number = max(number, x.all)
		for i := range x.ranges {
			if x.ranges[i].Overlaps(r) {
				number = max(number, x.ranges[i].number)
			}
		}
		last := floorDiv(r.Max, bucketNanos)
		for i, _ := x.search(floorDiv(r.Min, bucketNanos)); i < len(x.buckets) && x.buckets[i].bucket <= last; i++ {
			number = max(number, x.buckets[i].number)
		}
		x.mu.Unlock()
	}
	return number
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
