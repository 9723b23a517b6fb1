package ledger

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Tier is the account of a tier. The tier notes what it does with values; queries note what they find there.
// A nil Tier takes notes and keeps none.
type Tier struct {
	name  string
	index int
	// aside says that the tier is not on the way from the bucket to memory, and source that it has all that
	// it is asked for.
	aside, source bool
	state         atomic.Pointer[func() State]

	upkeep
	// took counts the reads that took less than 2^i microseconds, and not less than half of that.
	took [latencies]atomic.Int64
}

// latencies is the number of buckets of times: the last one begins at about 8 s.
const latencies = 25

// upkeep is what a tier has done with values.
type upkeep struct {
	admitted, refused              atomic.Int64
	evicted, unread, evictedBytes  atomic.Int64
	resident, residence            atomic.Int64 // evictions whose time in the tier is known, and its sum in ns
	written                        atomic.Int64 // bytes, to a device
	reads, readSeconds, readsBytes atomic.Int64 // readSeconds is in ns
}

// State is how a tier is at a moment.
type State struct {
	Bytes, LimitBytes, Entries int64
	// QueueBytes wait to be written.
	QueueBytes int64
	// Shares are the bytes of tenants, by number, as far as the tier knows them.
	Shares []int64
}

// Tier adds a tier on the way from memory to the bucket: it is asked after those that were added before.
func (l *Ledger) Tier(name string) *Tier { return l.add(&Tier{name: name}) }

// Source adds what has all that it is asked for, such as the bucket, on the same way.
func (l *Ledger) Source(name string) *Tier { return l.add(&Tier{name: name, source: true}) }

// Aside adds a tier off the way, such as one of results.
func (l *Ledger) Aside(name string) *Tier { return l.add(&Tier{name: name, aside: true}) }

func (l *Ledger) add(t *Tier) *Tier {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.tiers) == maxTiers {
		panic("BUG: the ledger has no room for another tier")
	}
	t.index = len(l.tiers)
	l.tiers = append(l.tiers, t)
	return t
}

// Describe sets the function that says how the tier is.
func (t *Tier) Describe(state func() State) {
	if t != nil {
		t.state.Store(&state)
	}
}

// State returns how the tier is, as far as it says so.
func (t *Tier) State() State {
	if f := t.state.Load(); f != nil {
		return (*f)()
	}
	return State{}
}

// Admitted notes that a value has entered the tier.
func (t *Tier) Admitted() {
	if t != nil {
		t.admitted.Add(1)
	}
}

// Refused notes that the tier did not keep a value that it was offered.
func (t *Tier) Refused() {
	if t != nil {
		t.refused.Add(1)
	}
}

// Evicted notes that a value has left for others. Read says whether a query wanted it since it entered, and
// after is how long ago that was; 0: unknown.
func (t *Tier) Evicted(bytes int64, read bool, after time.Duration) {
	if t == nil {
		return
	}
	t.evicted.Add(1)
	t.evictedBytes.Add(bytes)
	if !read {
		t.unread.Add(1)
	}
	if after > 0 {
		t.resident.Add(1)
		t.residence.Add(int64(after))
	}
}

// Wrote notes bytes that were written to a device.
func (t *Tier) Wrote(bytes int64) {
	if t != nil {
		t.written.Add(bytes)
	}
}

// Took notes a read: one request to a server or a disk, or a part of what one did.
func (t *Tier) Took(d time.Duration, bytes int64) {
	if t == nil {
		return
	}
	t.reads.Add(1)
	t.readSeconds.Add(int64(d))
	t.readsBytes.Add(bytes)
	t.took[min(bits.Len64(uint64(max(d, 0)/time.Microsecond)), latencies-1)].Add(1)
}

// quantile returns the time below which a share of the reads stayed, within a factor of 2.
func (t *Tier) quantile(q float64) time.Duration {
	var counts [latencies]int64
	all := int64(0)
	for i := range t.took {
		counts[i] = t.took[i].Load()
		all += counts[i]
	}
	seen := int64(0)
	for i, n := range counts {
		if seen += n; n > 0 && float64(seen) >= q*float64(all) {
			return time.Microsecond << i
		}
	}
	return 0
}
