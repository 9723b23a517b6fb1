package head

import (
	"context"
	"fmt"
	"slices"
	"strings"
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
	metrics *metrics

	merging  sync.Mutex // held by a merge or a ship
	flushing sync.Mutex // held by a flush
	edits    sync.Mutex // held by a change of the set of parts
	manifest manifest   // guarded by edits
	epoch    uint64     // of the journal, for ever
	orphans  []partInfo // guarded by edits: files of changes whose manifest may or may not have been written

	mu   sync.Mutex
	room *sync.Cond // waits on mu for buffers to shrink
	// Guarded by mu:
	active    *rowBuffer
	fresh     *labelBuffer
	runs      [signals][]*run      // oldest first
	labelRuns [signals][]*labelRun // oldest first
	parts     []*localPart         // in the order of the manifest: of each group, oldest first
	applied   uint64               // the last sequence number that has been applied
	rowBytes  int64                // of active and runs
	lblBytes  int64                // of fresh and labelRuns
	shut      bool

	// knownComplete says that the known set has been rebuilt, labelsMayGo that series or rows have left since labels were
	// last looked through.
	knownComplete, labelsMayGo atomic.Bool

	pagesRead atomic.Int64
	urge      chan struct{} // wakes the flush before its time
	flushed   chan struct{} // wakes the merges after a flush
	stop      context.CancelFunc
	done      sync.WaitGroup
}

// Open reads the manifest, opens the parts that it names and deletes files that it does not name. The journal is to be
// replayed from Covered()+1 by Apply before anything else; Start then begins the background work.
func Open(ctx context.Context, o Options) (*Head, error) {
	o.setDefaults()
	if err := o.FS.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("%w: %s: %v", model.ErrTransient, o.Dir, err)
	}
	if err := syncDir(o.FS, o.FS.PathDir(o.Dir)); err != nil {
		return nil, err
	}
	k, err := newKnown(o.KnownBytes)
	if err != nil {
		return nil, err
	}
	h := &Head{
		o: o, tenants: newTenants(o.MaxTenants), known: k,
		active: newRowBuffer(), fresh: newLabelBuffer(),
		urge: make(chan struct{}, 1), flushed: make(chan struct{}, 1), stop: func() {},
	}
	h.room = sync.NewCond(&h.mu)
	h.lookups.New = func() any { return new(lookup) }
	if err := h.openParts(ctx); err != nil {
		h.release()
		return nil, err
	}
	h.metrics = newMetrics(o.Registerer, h)
	return h, nil
}

func (h *Head) openParts(ctx context.Context) error {
	m, err := readManifest(h.o.FS, h.o.Dir)
	if err != nil {
		return err
	}
	files, err := h.o.FS.List(h.o.Dir)
	if err != nil {
		return fmt.Errorf("%w: %s: %v", model.ErrTransient, h.o.Dir, err)
	}
	if m == nil {
		if m, err = h.firstManifest(files); err != nil {
			return err
		}
	}
	if m.Seed != h.o.Seed {
		return fmt.Errorf("%w: the data folder %s has the key seed %016x and the bucket has %016x; they do not belong together", model.ErrInvalid, h.o.Dir, uint64(m.Seed), uint64(h.o.Seed))
	}
	h.manifest, h.applied, h.epoch = *m, m.Covered, m.Epoch
	h.o.Node = m.Node // a machine that is renamed must not ship the same rows under another name
	named := map[string]bool{manifestName: true}
	for _, info := range m.Parts {
		if err := info.Group.check(); err != nil {
			return fmt.Errorf("part %s: %w", info.File, err)
		}
		p, err := openLocalPart(ctx, h.o.FS, h.o.Dir, info, &h.pagesRead)
		if err != nil {
			return err
		}
		h.parts = append(h.parts, p)
		named[info.File] = true
		if p.reader.Meta().Seed != h.o.Seed {
			return fmt.Errorf("%w: part %s has another key seed", model.ErrCorrupt, info.File)
		}
		for _, t := range p.reader.Meta().Tenants {
			h.tenants.must(t.Name)
		}
	}
	for _, f := range files {
		if !named[f] {
			if err := h.o.FS.Remove(h.o.FS.PathJoin(h.o.Dir, f)); err != nil {
				return fmt.Errorf("%w: leftover %s: %v", model.ErrTransient, f, err)
			}
		}
	}
	return nil
}

// firstManifest makes the manifest of a new folder. A folder that has parts had a manifest, without which they must
// not be taken for leftovers.
func (h *Head) firstManifest(files []string) (*manifest, error) {
	for _, f := range files {
		if strings.HasSuffix(f, partSuffix) {
			return nil, fmt.Errorf("%w: %s holds parts, such as %s, and no %s that names them", model.ErrCorrupt, h.o.Dir, f, manifestName)
		}
	}
	m := &manifest{Version: manifestVersion, Seed: h.o.Seed, Node: h.o.Node, Epoch: uint64(h.o.Now()), NextFile: 1}
	return m, m.write(h.o.FS, h.o.Dir)
}

// Covered returns the last sequence number whose rows and labels are in parts.
func (h *Head) Covered() uint64 {
	h.edits.Lock()
	defer h.edits.Unlock()
	return h.manifest.Covered
}

// Resolve appends to dst the indexes of the series whose labels are not known to be durable, ascending, and marks the
// others as active. Its error, of class transient, refuses new series or a new tenant.
func (h *Head) Resolve(b *model.Batch, dst []uint32) ([]uint32, error) {
	tenant, err := h.tenants.admit(b.Tenant)
	if err != nil {
		return dst, err
	}
	l := h.lookups.Get().(*lookup)
	defer h.lookups.Put(l)
	n := len(dst)
	dst = h.known.missing(l, tenant, b.Signal, b.Keys, dst)
	if fresh := len(dst) - n; fresh > 0 {
		if err := h.known.room(fresh); err != nil {
			return dst[:n], err
		}
	}
	return dst, nil
}

// Apply takes a batch that is durable in the journal. When it returns, queries see its rows. It waits while the
// buffers are full, and then so do the journal and every sender behind it.
func (h *Head) Apply(seq uint64, b *model.Batch) {
	tenant := h.tenants.must(b.Tenant)
	h.mu.Lock()
	defer h.mu.Unlock()
	for (h.rowBytes > h.o.RowBytes || h.lblBytes > h.o.LabelBytes) && !h.shut {
		h.wake()
		h.room.Wait()
	}
	if h.shut { // the journal has the batch, and the next start gets it from there
		return
	}
	rowsBefore, labelsBefore := h.active.bytes, h.fresh.bytes
	for i := range b.Labels.Len() {
		k := b.Keys[b.Labels.Series[i]]
		if h.known.insert(tenant, b.Signal, k) {
			h.fresh.add(b.Tenant, b.Signal, k, b.Labels.At(i))
		}
	}
	h.active.apply(seq, b)
	h.applied = seq
	h.rowBytes += h.active.bytes - rowsBefore
	h.lblBytes += h.fresh.bytes - labelsBefore
	if h.halfFullLocked() {
		h.wake()
	}
}

// HalfFull reports whether it is time to flush: half of the buffer fills while the other half is being written.
func (h *Head) HalfFull() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.halfFullLocked()
}

func (h *Head) halfFullLocked() bool {
	return h.rowBytes > h.o.RowBytes/2 || h.lblBytes > h.o.LabelBytes/2
}

// wake asks for a flush before its time.
func (h *Head) wake() {
	select {
	case h.urge <- struct{}{}:
	default:
	}
}

// seal makes sorted runs of the active buffers. The caller holds mu.
func (h *Head) sealLocked() {
	if h.active.rows > 0 {
		for _, r := range h.active.seal() {
			h.addRunLocked(r)
		}
		h.active = newRowBuffer()
	}
	if len(h.fresh.entries) > 0 {
		for _, r := range h.fresh.seal() {
			h.addLabelRunLocked(r)
		}
		h.fresh = newLabelBuffer()
	}
}

func (h *Head) addRunLocked(r *run) {
	runs := h.runs[r.signal]
	for n := len(runs); n > 0; n-- {
		if o := runs[n-1]; o.flushing || o.rows > combineBelow || o.rows > 2*r.rows {
			break
		}
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
