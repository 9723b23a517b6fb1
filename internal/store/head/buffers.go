package head

import (
	"slices"

	"github.com/shaledb/shale/internal/model"
)

// buffers hold the rows and labels that have been applied and are in no part yet. Head.mu guards them.
type buffers struct {
	rows      *rowBuffer
	labels    *labelBuffer
	crowded   map[crowdedKey]struct{} // series without room in the known set whose labels are in the label buffer
	runs      [signals][]*run         // oldest first
	labelRuns [signals][]*labelRun    // oldest first

	rowBytes   int64 // of rows and runs
	blobBytes  int64 // the part of rowBytes that blobs take
	labelBytes int64 // of labels and labelRuns
}

// apply appends the rows of a batch to the row buffer.
func (b *buffers) apply(seq uint64, batch *model.Batch) {
	before, blobs := b.rows.bytes, b.rows.blobBytes
	b.rows.apply(seq, batch)
	b.rowBytes += b.rows.bytes - before
	b.blobBytes += b.rows.blobBytes - blobs
}

// addLabels appends the label set of one series, which costs extra bytes besides the set.
func (b *buffers) addLabels(batch *model.Batch, i int, k model.Key, extra int64) {
	before := b.labels.bytes
	b.labels.add(batch.Tenant, batch.Signal, k, batch.Labels.At(i), extra)
	b.labelBytes += b.labels.bytes - before
}

// firstCrowded reports whether the labels of a series without room in the known set come for the first time since the
// last flush, and remembers them.
func (b *buffers) firstCrowded(k crowdedKey) bool {
	if _, seen := b.crowded[k]; seen {
		return false
	}
	if b.crowded == nil {
		b.crowded = make(map[crowdedKey]struct{})
	}
	b.crowded[k] = struct{}{}
	return true
}

// holdRows reports whether a flush would free memory of rows.
func (b *buffers) holdRows() bool {
	return b.rows.rows > 0 || slices.ContainsFunc(b.runs[:], func(runs []*run) bool { return len(runs) > 0 })
}

// peakBytes is the memory of the rows while they are being sorted.
func (b *buffers) peakBytes() int64 { return peakBytes(b.rowBytes, b.blobBytes) }

// sealRows makes runs of the buffered rows.
func (b *buffers) sealRows() {
	if b.rows.rows == 0 {
		return
	}
	var sealed []*run
	sealed, b.rows = b.rows.seal()
	for _, r := range sealed {
		b.runs[r.signal] = addRun(b.runs[r.signal], r)
	}
}

// sealLabels makes runs of the buffered labels.
func (b *buffers) sealLabels() {
	if b.labels.empty() {
		return
	}
	var sealed []*labelRun
	sealed, b.labels = b.labels.seal()
	for _, r := range sealed {
		b.labelRuns[r.signal] = addLabelRun(b.labelRuns[r.signal], r)
	}
}

// beginFlush seals everything and returns all runs, which from then on are not combined.
func (b *buffers) beginFlush() (runs []*run, labelRuns []*labelRun) {
	b.sealRows()
	b.sealLabels()
	b.crowded = nil
	for s := range signals {
		for _, r := range b.runs[s] {
			r.flushing = true
			runs = append(runs, r)
		}
		for _, r := range b.labelRuns[s] {
			r.flushing = true
			labelRuns = append(labelRuns, r)
		}
	}
	return runs, labelRuns
}

// drop removes runs that are in parts.
func (b *buffers) drop(runs []*run, labelRuns []*labelRun) {
	for s := range signals {
		b.runs[s] = without(b.runs[s], runs)
		b.labelRuns[s] = without(b.labelRuns[s], labelRuns)
	}
	for _, r := range runs {
		b.rowBytes -= r.bytes
		b.blobBytes -= r.blobBytes
	}
	for _, r := range labelRuns {
		b.labelBytes -= r.bytes
	}
}

// without returns the items that are not among those removed. Queries may hold the old slice, so it stays as it is.
func without[T comparable](items, removed []T) []T {
	if len(removed) == 0 {
		return items
	}
	var kept []T
	for _, x := range items {
		if !slices.Contains(removed, x) {
			kept = append(kept, x)
		}
	}
	return kept
}
