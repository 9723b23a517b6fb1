package head

import (
	"slices"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/labels"
	"github.com/shaledb/shale/internal/store/head/rows"
)

// buffers hold the rows and labels that have been applied and are in no part yet. Head.mu guards them.
type buffers struct {
	rows      *rows.Buffer
	labels    *labels.Buffer
	crowded   map[crowdedKey]struct{} // series without room in the known set, with labels in the label buffer
	runs      [signals][]*rows.Run    // oldest first
	labelRuns [signals][]*labels.Run  // oldest first

	rowBytes   int64 // of rows and runs
	blobBytes  int64 // the part of rowBytes that blobs take
	labelBytes int64 // of labels and labelRuns
}

// apply appends the rows of a batch to the row buffer.
func (b *buffers) apply(seq uint64, batch *model.Batch) {
	before, blobs := b.rows.Bytes, b.rows.BlobBytes
	b.rows.Append(seq, batch)
	b.rowBytes += b.rows.Bytes - before
	b.blobBytes += b.rows.BlobBytes - blobs
}

// addLabels appends the label set of one series, which costs extra bytes besides the set.
func (b *buffers) addLabels(batch *model.Batch, i int, k model.Key, extra int64) {
	before := b.labels.Bytes
	b.labels.Add(batch.Tenant, batch.Signal, k, batch.Labels.At(i), extra)
	b.labelBytes += b.labels.Bytes - before
}

// firstCrowded reports whether the labels of a series without room in the known set come for the first time
// since the last flush, and remembers them.
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
	return b.rows.Rows > 0 || slices.ContainsFunc(b.runs[:], func(runs []*rows.Run) bool { return len(runs) > 0 })
}

// peakBytes is the memory of the rows while they are being sorted.
func (b *buffers) peakBytes() int64 { return rows.PeakBytes(b.rowBytes, b.blobBytes) }

// sealRows makes runs of the buffered rows.
func (b *buffers) sealRows() {
	if b.rows.Rows == 0 {
		return
	}
	var sealed []*rows.Run
	sealed, b.rows = b.rows.Seal()
	for _, r := range sealed {
		b.runs[r.Signal] = rows.Add(b.runs[r.Signal], r)
	}
}

// sealLabels makes runs of the buffered labels.
func (b *buffers) sealLabels() {
	if b.labels.Empty() {
		return
	}
	var sealed []*labels.Run
	sealed, b.labels = b.labels.Seal()
	for _, r := range sealed {
		b.labelRuns[r.Signal] = labels.AddRun(b.labelRuns[r.Signal], r)
	}
}

// endRuns says that no run may be combined with later ones.
func (b *buffers) endRuns() {
	for s := range signals {
		for _, r := range b.runs[s] {
			r.Flushing = true
		}
	}
}

// beginFlush seals everything and returns all runs, which from then on are not combined.
func (b *buffers) beginFlush() (runs []*rows.Run, labelRuns []*labels.Run) {
	b.sealRows()
	b.sealLabels()
	b.crowded = nil
	b.endRuns()
	for s := range signals {
		runs = append(runs, b.runs[s]...)
		for _, r := range b.labelRuns[s] {
			r.Flushing = true
			labelRuns = append(labelRuns, r)
		}
	}
	return runs, labelRuns
}

// drop removes runs that are in parts.
func (b *buffers) drop(runs []*rows.Run, labelRuns []*labels.Run) {
	for s := range signals {
		b.runs[s] = without(b.runs[s], runs)
		b.labelRuns[s] = without(b.labelRuns[s], labelRuns)
	}
	for _, r := range runs {
		b.rowBytes -= r.Bytes
		b.blobBytes -= r.BlobBytes
	}
	for _, r := range labelRuns {
		b.labelBytes -= r.Bytes
	}
}

// without returns the items that are not among those removed. Queries may hold the old slice, so it stays as
// it is.
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
