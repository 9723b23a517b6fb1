package head

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/shaledb/shale/internal/model"
)

// signals is one more than the greatest signal: runs are kept by signal.
const signals = int(model.Logs) + 1

// Head is the recent past of one process. It is safe for concurrent use, except that Apply is called by one goroutine.
type Head struct {
	o       Options
	tenants *tenants
	known   *known
	lookups sync.Pool
	adding  struct { // the memory of Apply, which one goroutine calls
		lookup lookup
		keys   []model.Key
	}
	limits  creationLimits
	about   metadata
	metrics *metrics

	merging  sync.Mutex         // held by a merge or a ship
	built    map[shipID][]Block // guarded by merging: blocks that wait for the bucket
	flushing sync.Mutex         // held by a flush
	edits    sync.Mutex         // held by a change of the set of parts
	manifest manifest           // guarded by edits
	epoch    uint64             // of the journal, for ever
	orphans  []partInfo         // guarded by edits: files of changes whose manifest may or may not have been written

	mu   sync.Mutex
	room *sync.Cond // waits on mu for buffers to shrink
	// Guarded by mu:
	active    *rowBuffer
	fresh     *labelBuffer
	crowded   crowded
	runs      [signals][]*run      // oldest first
	labelRuns [signals][]*labelRun // oldest first
	parts     []*localPart         // in the order of the manifest: of each group, oldest first
	applied   uint64               // the last sequence number that has been applied
	rowBytes  int64                // of active and runs
	blobBytes int64                // of these, those of blobs
	lblBytes  int64                // of fresh and labelRuns
	flushes   bool                 // somebody flushes, so Apply may wait for room
	shut      bool

	// knownComplete says that the known set has been rebuilt, labelsMayGo that series or rows have left since labels were
	// last looked through.
	knownComplete, labelsMayGo atomic.Bool

	pagesRead   atomic.Int64
	blockSeries int
	urge        chan struct{}   // wakes the flush before its time
	flushed     chan struct{}   // wakes the merges after a flush
	running     context.Context // until Close
	stop        context.CancelFunc
	done        sync.WaitGroup
}

// Covered returns the last sequence number whose rows and labels are in parts.
func (h *Head) Covered() uint64 {
	h.edits.Lock()
	defer h.edits.Unlock()
	return h.manifest.Covered
}

// Shut lets Apply take nothing any more, so that nobody waits for buffers that cannot be flushed.
func (h *Head) Shut() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.shut = true
	h.room.Broadcast()
}

// Close ends the background work, flushes what is buffered and closes the parts.
func (h *Head) Close() error {
	h.stop()
	h.done.Wait()
	err := h.Flush(context.Background())
	h.saveMetadata(true)
	h.dropBuilt()
	h.Shut()
	h.release()
	return err
}

// release gives up files and memory outside the Go heap.
func (h *Head) release() {
	for _, p := range h.parts {
		p.unpin()
	}
	h.parts = nil
	h.known.close()
}
