package patterns

import (
	"math"
	"time"
)

// fineTime is how long counts stay fine, if there is memory for them.
const fineTime = time.Hour

// shrinkLocked makes room if there are too many bytes. Lines that wait have two fifths of the memory. Tenants
// without streams go first, or last while their time lies ahead.
func (k *Keeper) shrinkLocked() {
	if k.bytes <= k.o.MaxBytes/5*3 {
		return
	}
	for _, t := range k.tenants {
		if len(t.streams) == 0 {
			k.emptied(t)
		}
	}
	for k.bytes > k.o.MaxBytes/5*3 {
		var most *tenant
		for _, t := range k.tenants {
			if len(t.streams) > 0 && (most == nil || t.bytes > most.bytes) {
				most = t
			}
		}
		if most == nil {
			for _, t := range k.tenants {
				k.forgetTenant(t)
			}
			return
		}
		k.guarded(most, func() { k.shrinkTenant(most) })
	}
}

// shrinkTenant takes the resolution of the tenant's older counts or, if they have lost it, the oldest quarter
// of their time.
func (k *Keeper) shrinkTenant(t *tenant) {
	now := k.o.Now().Unix()
	before := now - int64(fineTime/time.Second)
	before -= before % coarse
	if before > t.fineSince {
		t.fineSince = before
		k.change(t, func(counts []bucket) []bucket { return coarsen(counts, uint32(before)) })
		return
	}
	oldest := int64(math.MaxInt64)
	for s := range t.streams {
		for _, m := range s.byLevel {
			if m == nil {
				continue
			}
			for _, list := range m.structures {
				for _, c := range list {
					if len(c.counts) > 0 {
						oldest = min(oldest, int64(c.counts[0].begin))
					}
				}
			}
		}
	}
	// Beyond now there are few lines, so that time goes last.
	oldest = max(oldest, t.since)
	t.since = ceil(oldest+max((now-oldest)/4, coarse), coarse)
	k.change(t, func(counts []bucket) []bucket { return forget(counts, uint32(min(t.since, math.MaxUint32))) })
}

// change replaces the counts of a tenant, and removes streams that have none left.
func (k *Keeper) change(t *tenant, counts func([]bucket) []bucket) {
	var gone []*stream
	bytes := int64(0)
	for s := range t.streams {
		left := false
		for level, m := range s.byLevel {
			if m == nil {
				continue
			}
			before := m.bytes
			m.change(counts)
			if m.clusters == 0 {
				s.byLevel[level] = nil
				bytes -= before
				continue
			}
			bytes += m.bytes - before
			left = true
		}
		if !left {
			bytes -= streamBytes + int64(len(s.labels))
			delete(t.streams, s)
			gone = append(gone, s)
		}
	}
	k.charge(t, bytes)
	k.intake.forget(gone)
	k.metrics.shrunk.Inc()
	if len(t.streams) == 0 {
		k.emptied(t)
	}
}
