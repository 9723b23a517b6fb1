package head

import (
	"slices"

	"github.com/shaledb/shale/internal/model"
)

// Apply takes a batch that is durable in the journal. When it returns, queries see its rows. It waits while the
// buffers have no room, and then so do the journal and every sender behind it; before Start, when nobody would make
// room, it does not wait, and the caller flushes when [Head.HalfFull] says so.
func (h *Head) Apply(seq uint64, b *model.Batch) {
	tenant := h.tenants.must(b.Tenant)
	need := batchLoad(b)
	h.mu.Lock()
	for h.flushes && !h.shut && h.fullLocked(need) {
		h.wake()
		h.room.Wait()
	}
	if h.shut { // the journal has the batch, and the next start gets it from there
		h.mu.Unlock()
		return
	}
	noRoomFor := h.addLabelsLocked(tenant, b)
	before, blobs := h.active.bytes, h.active.blobBytes
	h.active.apply(seq, b)
	h.applied = seq
	h.rowBytes += h.active.bytes - before
	h.blobBytes += h.active.blobBytes - blobs
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
	before, keys := h.fresh.bytes, h.adding.keys[:0]
	for _, series := range b.Labels.Series {
		keys = append(keys, b.Keys[series])
	}
	h.adding.keys = keys
	h.known.insertAll(&h.adding.lookup, tenant, b.Signal, keys)
	for i, k := range keys {
		switch h.adding.lookup.came[i] {
		case wasKnown:
		case isKnown:
			h.fresh.add(b.Tenant, b.Signal, k, b.Labels.At(i), 0)
		case noRoom:
			noRoomFor++
			if h.crowded.first(crowdedKey{tenant, b.Signal, k}) {
				h.fresh.add(b.Tenant, b.Signal, k, b.Labels.At(i), crowdedBytes)
			}
		}
	}
	h.lblBytes += h.fresh.bytes - before
	return noRoomFor
}

// retireStale lets series go soon whose last row says that they have ended.
func (h *Head) retireStale(tenant uint16, b *model.Batch) {
	c := &b.Samples
	for i, k := range b.Keys {
		if end := c.End(i); end > c.Begin(i) && c.IsStale(int(end)-1) {
			h.known.retire(tenant, b.Signal, k, h.idleTicks())
		}
	}
}

// fullLocked reports whether rows of such a load have to wait for a flush. Rows that are larger than what there is get
// in when nothing else is buffered: Resolve has refused them unless the limit was another one then.
func (h *Head) fullLocked(rows int64) bool {
	return h.lblBytes > h.o.LabelBytes || load(h.rowBytes, h.blobBytes)+rows > h.o.mostLoad() && h.bufferedLocked()
}

// bufferedLocked reports whether a flush would free memory of rows.
func (h *Head) bufferedLocked() bool {
	return h.active.rows > 0 || slices.ContainsFunc(h.runs[:], func(runs []*run) bool { return len(runs) > 0 })
}

// HalfFull reports whether it is time to flush: half of the buffer fills while the other half is being written.
func (h *Head) HalfFull() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.halfFullLocked()
}

func (h *Head) halfFullLocked() bool {
	return load(h.rowBytes, h.blobBytes) > h.o.mostLoad()/2 && h.bufferedLocked() || h.lblBytes > h.o.LabelBytes/2
}

// wake asks for a flush before its time.
func (h *Head) wake() {
	select {
	case h.urge <- struct{}{}:
	default:
	}
}

// sealRowsLocked makes sorted runs of the active rows.
func (h *Head) sealRowsLocked() {
	if h.active.rows == 0 {
		return
	}
	runs, next := h.active.seal()
	h.active = next
	for _, r := range runs {
		h.addRunLocked(r)
	}
}

// sealLabelsLocked makes sorted runs of the labels that came since.
func (h *Head) sealLabelsLocked() {
	if len(h.fresh.lists) == 0 {
		return
	}
	runs, next := h.fresh.seal()
	h.fresh = next
	for _, r := range runs {
		h.addLabelRunLocked(r)
	}
}

func (h *Head) addRunLocked(r *run) {
	runs := h.runs[r.signal]
	for n := len(runs); n > 0 && mayCombine(runs[n-1], r); n-- {
		r, runs = combine(runs[n-1], r), runs[:n-1]
	}
	// A query may hold the old slice, so a new one is made.
	h.runs[r.signal] = append(slices.Clone(runs), r)
}

func (h *Head) addLabelRunLocked(r *labelRun) {
	runs := h.labelRuns[r.signal]
	for n := len(runs); n > 0; n-- {
		if o := runs[n-1]; o.flushing || o.count > combineBelow || o.count > 2*r.count {
			break
		}
		r, runs = combineLabels(runs[n-1], r), runs[:n-1]
	}
	h.labelRuns[r.signal] = append(slices.Clone(runs), r)
}
