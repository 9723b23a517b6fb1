package head

import (
	"context"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/rows"
	"github.com/shaledb/shale/internal/store/known"
)

// Apply takes a batch that is durable in the journal. When it returns, queries see its rows. It waits while
// the buffers are full, and then so do the journal and all senders. Before Start nothing would make room, so
// it does not wait, and the caller flushes when [Head.HalfFull] says so. It reports whether it has taken the
// batch: after [Head.Shut] it takes none.
func (h *Head) Apply(seq uint64, b *model.Batch) bool {
	if b.Control.Kind != 0 {
		h.applyControl(seq, b)
		return h.Applied() >= seq
	}
	tenant := h.tenants.must(b.Tenant)
	need := rows.BatchPeakBytes(b)
	h.mu.Lock()
	for h.mu.flushing && !h.mu.shut && h.fullLocked(need) {
		h.wake()
		h.mu.room.Wait()
	}
	if h.mu.shut { // the next start replays the batch from the journal
		h.mu.Unlock()
		return false
	}
	noRoomFor := h.addLabelsLocked(tenant, b)
	h.mu.buffers.apply(seq, b)
	h.appliedLocked(seq)
	if h.halfFullLocked() {
		h.wake()
	}
	h.mu.Unlock()
	if h.o.Changes != nil {
		h.o.Changes.Applied(b)
	}
	if !h.o.KeepStale {
		h.retireStale(tenant, b)
	}
	h.reportCrowded(noRoomFor)
	return true
}

// Learn takes labels of series whose rows may follow without labels. It is called before Start, and flushes
// what takes half of a buffer.
func (h *Head) Learn(ctx context.Context, b *model.Batch) error {
	tenant := h.tenants.must(b.Tenant)
	h.mu.Lock()
	noRoomFor := h.addLabelsLocked(tenant, b)
	full := h.halfFullLocked()
	h.mu.Unlock()
	h.reportCrowded(noRoomFor)
	if full {
		return h.Flush(ctx)
	}
	return nil
}

// addLabelsLocked makes series known, with their labels in the buffer, and returns the number of series that
// the known set has no room for.
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

// retireStale makes series leave the known set soon whose last row is a stale marker.
func (h *Head) retireStale(tenant uint16, b *model.Batch) {
	c := &b.Samples
	for i, k := range b.Keys {
		if end := c.End(i); end > c.Begin(i) && c.IsStale(int(end)-1) {
			h.known.Retire(tenant, b.Signal, k, 0, h.idleTicks())
		}
	}
}

// fullLocked reports whether rows with a given peak have to wait for a flush. Rows that exceed the whole
// buffer are taken when nothing else is buffered: Resolve refuses them, but they may have come when the limit
// was higher.
func (h *Head) fullLocked(rows int64) bool {
	b := &h.mu.buffers
	return b.labelBytes > h.o.LabelBytes || b.peakBytes()+rows > h.o.maxPeakBytes() && b.holdRows()
}

// HalfFull reports whether it is time to flush: one half of the buffer fills while the other half is being
// written.
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
