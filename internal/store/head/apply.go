package head

import (
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/known"
	"github.com/shaledb/shale/internal/store/head/rows"
)

// Apply takes a batch that is durable in the journal. When it returns, queries see its rows. It waits while the
// buffers have no room, and then so do the journal and every sender behind it; before Start, when nobody would make
// room, it does not wait, and the caller flushes when [Head.HalfFull] says so.
func (h *Head) Apply(seq uint64, b *model.Batch) {
	tenant := h.tenants.must(b.Tenant)
	need := rows.BatchPeakBytes(b)
	h.mu.Lock()
	for h.mu.flushing && !h.mu.shut && h.fullLocked(need) {
		h.wake()
		h.mu.room.Wait()
	}
	if h.mu.shut { // the journal has the batch, and the next start gets it from there
		h.mu.Unlock()
		return
	}
	noRoomFor := h.addLabelsLocked(tenant, b)
	h.mu.buffers.apply(seq, b)
	h.mu.applied = seq
	if h.halfFullLocked() {
		h.wake()
	}
	h.mu.Unlock()
	h.retireStale(tenant, b)
	h.reportCrowded(noRoomFor)
}

// addLabelsLocked makes series known, with their labels in the buffer, and returns for how many there was no room.
func (h *Head) addLabelsLocked(tenant uint16, b *model.Batch) (noRoomFor int) {
	if b.Labels.Len() == 0 {
		return 0
	}
	keys := h.adding.keys[:0]
	for _, series := range b.Labels.Series {
		keys = append(keys, b.Keys[series])
	}
	h.adding.keys = keys
	outcomes := h.known.InsertAll(&h.adding.lookup, tenant, b.Signal, keys)
	for i, k := range keys {
		switch outcomes[i] {
		case known.AlreadyKnown:
		case known.Added:
			h.mu.buffers.addLabels(b, i, k, 0)
		case known.NoRoom:
			noRoomFor++
			if h.mu.buffers.firstCrowded(crowdedKey{tenant, b.Signal, k}) {
				h.mu.buffers.addLabels(b, i, k, crowdedBytes)
			}
		}
	}
	return noRoomFor
}

// retireStale lets series go soon whose last row says that they have ended.
func (h *Head) retireStale(tenant uint16, b *model.Batch) {
	c := &b.Samples
	for i, k := range b.Keys {
		if end := c.End(i); end > c.Begin(i) && c.IsStale(int(end)-1) {
			h.known.Retire(tenant, b.Signal, k, h.idleTicks())
		}
	}
}

// fullLocked reports whether rows of such a load have to wait for a flush. Rows that are larger than what there is get
// in when nothing else is buffered: Resolve has refused them unless the limit was another one then.
func (h *Head) fullLocked(rows int64) bool {
	b := &h.mu.buffers
	return b.labelBytes > h.o.LabelBytes || b.peakBytes()+rows > h.o.maxPeakBytes() && b.holdRows()
}

// HalfFull reports whether it is time to flush: half of the buffer fills while the other half is being written.
func (h *Head) HalfFull() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.halfFullLocked()
}

func (h *Head) halfFullLocked() bool {
	b := &h.mu.buffers
	return b.peakBytes() > h.o.maxPeakBytes()/2 && b.holdRows() || b.labelBytes > h.o.LabelBytes/2
}

// wake asks for a flush before its time.
func (h *Head) wake() {
	select {
	case h.background.urge <- struct{}{}:
	default:
	}
}
