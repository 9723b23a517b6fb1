package head

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/local"
	"github.com/shaledb/shale/internal/store/head/metadata"
	"github.com/shaledb/shale/internal/store/known"
)

// signals is one more than the greatest signal. Runs are kept by signal.
const signals = int(model.Logs) + 1

// Head is the recent past of one process. It is safe for concurrent use, except that Apply is called by one
// goroutine.
type Head struct {
	o             Options
	tenants       *tenants
	known         *known.Set
	knownRebuilt  atomic.Bool // the known set has been rebuilt from the label parts, as far as they can be read
	knownComplete atomic.Bool // it has the series of all of them
	// restored are the label parts whose series are in it, until it is rebuilt. Only rebuildKnown uses it.
	restored  map[string]bool
	resolving sync.Pool // of *resolver
	adding    struct {  // the memory of Apply
		lookup known.Lookup
		keys   []model.Key
		// reported is when the log was last told that the known set is full.
		reported time.Time
	}
	limits      creationLimits
	metadata    *metadata.Map
	metrics     *metrics
	pagesRead   atomic.Int64
	epoch       uint64 // names the journal; never changes
	blockSeries int    // series that end a block: maxBlockSeries, except in tests
	background  background

	// The locks, in the order in which they are taken.
	merging struct { // one merge or ship at a time
		sync.Mutex
		built    map[shipID][]Block      // finished blocks that wait for the bucket
		reserved map[shipID]*reservation // of the ships that are marked
		kept     map[string]bool         // parts of which the folder set-aside has a link
		// covered and flushed are those of the next ship.
		covered uint64
		flushed int64
		// recorded is up to where ships have covered the journal, as far as that is known.
		recorded uint64
		// rowLabels are the label sets of a signal that the last merge of all has kept only for local rows; 0
		// once rows of a window have left since.
		rowLabels [signals]int64
		// seam is what the last Trim that came so far has flushed. Merges do not cross it.
		seam uint64
	}
	flushing sync.Mutex // one flush at a time
	edits    struct {   // one change of the set of parts at a time
		sync.Mutex
		manifest local.Manifest
		orphans  []local.Info // files of changes whose manifest may or may not have been written
	}
	mu struct { // what queries see
		sync.Mutex
		room      *sync.Cond // signalled when buffers shrink
		buffers   buffers
		parts     []*local.Part // in the order of the manifest: within a group, oldest first
		lingering []lingering   // shipped ones; replaced, never changed
		applied   uint64        // the last sequence number that has been applied
		awaiting  int           // callers of AwaitApplied that wait on room
		fences    []*fence      // deletions in the order of the journal; replaced, never changed
		flushing  bool          // a goroutine flushes, so Apply may wait for room
		shut      bool
	}
	leftovers []string // files that no manifest names
	// labelsMayGo is set when series or rows have left since labels were last checked for removal.
	labelsMayGo [signals]atomic.Bool
}

// background is what the goroutines of a head share.
type background struct {
	running context.Context // until Close
	stop    context.CancelFunc
	done    sync.WaitGroup
	urge    chan struct{} // asks for a flush before its time
	flushed chan struct{} // wakes the merges after a flush
}

// Covered returns the last sequence number whose rows and labels are in parts.
func (h *Head) Covered() uint64 {
	h.edits.Lock()
	defer h.edits.Unlock()
	return h.edits.manifest.Covered
}

// Journal returns the node and the epoch that name the journal of this folder in blocks.
func (h *Head) Journal() (node string, epoch uint64) { return h.o.Node, h.epoch }

// Shut makes Apply take no more batches, so that it does not wait for buffers that cannot be flushed.
func (h *Head) Shut() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.shut = true
	h.mu.room.Broadcast()
}

// Rest ends the background work, so that nothing but the caller flushes or ships. A batch that waits for room
// in the buffers waits until [Head.Shut].
func (h *Head) Rest() {
	h.background.stop()
	h.background.done.Wait()
}

// Close ends the background work, flushes what is buffered and closes the parts.
func (h *Head) Close() error {
	h.Rest()
	err := h.Flush(context.Background())
	h.saveMetadata(true)
	h.dropBuilt()
	h.merging.Lock()
	for id := range h.merging.reserved {
		h.endReservation(id)
	}
	h.merging.Unlock()
	h.Shut()
	h.release()
	return err
}

// release closes files and frees the memory outside the Go heap.
func (h *Head) release() {
	h.mu.Lock() // metrics are read until the end
	parts, lingering := h.mu.parts, h.mu.lingering
	h.mu.parts, h.mu.lingering = nil, nil
	h.mu.Unlock()
	for _, p := range parts {
		p.Unpin()
	}
	for _, l := range lingering {
		l.part.Drop()
	}
	h.known.Close()
}
