package catalog

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
	del "github.com/shaledb/shale/internal/store/deletion"
)

// Options open a Catalog.
type Options struct {
	// Now returns the time in Unix nanoseconds; nil means the clock of the machine.
	Now func() int64
	// Memory keeps a second copy of every known record outside of the bucket: in a folder of this process
	// alone. Nil: losses of whole buckets, and older copies of them, are not noticed after a restart.
	Memory bucket.Bucket
	// Describe returns the entry of a block whose record is lost with its copies, as far as its object of
	// size bytes tells. Nil: such blocks are not looked for before the first garbage collection, and an
	// unknown block may have rows of every tenant.
	Describe func(ctx context.Context, id string, size int64) (Block, error)

	// Changed is called each time that queries see another state of the catalogue; nil: none is called. It
	// must not wait, or call the catalogue.
	Changed func()
	// Changes is told of rows that come or go in queries by what other processes commit, and by deletions.
	// It may be nil.
	Changes Changes
	// TellOwn tells Changes also of what this process commits: its queries do not see rows before they are
	// shipped, or not as its own.
	TellOwn bool
	// Filters compiles the filters of deletions. Nil: they hide nothing, see [del.Deletion.Compile].
	Filters del.Compiler

	Registerer prometheus.Registerer
	Logger     *slog.Logger // nil: no log
}

// Catalog holds the commit records of a bucket in memory. It is safe for concurrent use.
type Catalog struct {
	b      bucket.Bucket
	memory bucket.Bucket // nil: none
	// describe may be nil, see Options.
	describe func(ctx context.Context, id string, size int64) (Block, error)
	filters  del.Compiler
	changed  func()
	changes  Changes // may be nil
	tellOwn  bool
	now      func() int64
	log      *slog.Logger
	metrics  *metrics

	// boot names this catalogue in the attempts of its ships.
	boot string
	// commits is held while the bucket is changed, so that order numbers become visible in their order.
	commits  model.Turn
	attempts int // guarded by commits
	// collecting is held while garbage is deleted. That may take long, and commits need not wait for it.
	collecting sync.Mutex

	// mu guards the fields below. It is not held during requests to the bucket.
	mu      sync.Mutex
	records map[string]*commit
	// holder maps a block to its record. doubled are the blocks that have had more than one: a repair has
	// rebuilt the record, and then the true one came back.
	holder  map[string]*commit
	doubled map[string]bool
	// lastShip, maxOrder and maxGeneration are the greatest numbers ever seen.
	lastShip, maxOrder, maxGeneration uint64
	// covered holds the ship that covers each journal last.
	covered map[journal]*commit
	// givenUp is replaced, never changed.
	givenUp atomic.Pointer[[]GivenUp]
	listed  int64 // when the last listing of the records began; 0: never
	// uploading holds the blocks whose objects this process is writing, gone the hidden blocks whose objects
	// it has deleted.
	uploading map[string]int
	gone      map[string]bool
	// deleting holds the blocks whose objects are being deleted as orphans. Each channel is closed
	// afterwards.
	deleting map[string]chan struct{}
	// orphans are objects without a record, with the times when they were seen. Nil before the first
	// collection.
	orphans map[string]*orphan
	// markers holds the markers of the uploads of this process that were not committed yet, by block.
	markers map[string][]string
	// claims holds the claims to delete a block that an upload of this process has met, and when it met them
	// first, by block.
	claims map[string]map[string]time.Time
	// strays are blocks whose record is lost and not known, as far as their objects tell.
	strays map[string]Block
	// lost holds the known records that are missing from the bucket, damaged those that are unreadable there.
	lost, damaged map[string]bool
	// copied holds the records with a copy in the bucket.
	copied map[string]bool
	// searched are the lists of collected records that need not be read for the lost ones any more.
	searched searchedLists
	// compared is when the memory was compared with the bucket last, successfully or not. 0: never.
	compared  int64
	forgetful bool // the memory has failed, and the log says so
	// purged is when old lists of collected records were deleted last, and sought when objects without a
	// record were searched for. collecting guards both.
	purged, sought int64
	names          map[string]string // tenants, one string each

	view atomic.Pointer[view]
}

// view is the immutable state that queries read.
type view struct {
	blocks    []Block // visible, in the order of their first times
	ids       map[string]bool
	deletions Deletions // ascending, without those that were cancelled
	byTenant  map[string]Deletions
	requests  map[request]*Deletion // also the cancelled ones
	strays    []Block
	// rollups are those that count, in the order of their first times, and dead the others that are visible.
	rollups, dead []Block
	// unrolled are visible blocks of which no rollups are made.
	unrolled map[UnrolledBlock]bool
}

// Open reads the commit records of a bucket. Errors name the object. They are of class corrupt for an
// unreadable record, of class invalid for a record of a later version, or those of the bucket.
func Open(ctx context.Context, b bucket.Bucket, o Options) (*Catalog, error) {
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixNano() }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Changed == nil {
		o.Changed = func() {}
	}
	c := &Catalog{
		changed: o.Changed, changes: o.Changes, tellOwn: o.TellOwn, b: b, memory: o.Memory, describe: o.Describe, filters: o.Filters, now: o.Now, log: o.Logger, records: map[string]*commit{}, holder: map[string]*commit{}, doubled: map[string]bool{},
		uploading: map[string]int{}, gone: map[string]bool{}, deleting: map[string]chan struct{}{}, markers: map[string][]string{},
		claims: map[string]map[string]time.Time{}, strays: map[string]Block{}, lost: map[string]bool{}, damaged: map[string]bool{}, copied: map[string]bool{},
		names: map[string]string{}, covered: map[journal]*commit{}, boot: nonce(), commits: model.NewTurn(),
	}
	c.givenUp.Store(new([]GivenUp))
	c.metrics = newMetrics(o.Registerer, c)
	c.publish()
	if err := c.Refresh(ctx); err != nil {
		return nil, err
	}
	if err := c.recall(ctx); err != nil {
		return nil, fmt.Errorf("catalogue: %w", err)
	}
	if err := c.keepSeed(ctx); err != nil {
		c.log.Warn("cannot write the copy of the seed", "err", err)
	}
	if c.describe != nil {
		l, err := c.findLeftovers(ctx)
		if err != nil {
			return nil, fmt.Errorf("catalogue: %w", err)
		}
		c.noteStrays(ctx, l.strays)
	}
	return c, nil
}

// add and forget change the known records; the caller publishes afterwards. mu must be held.
func (c *Catalog) add(r *commit) {
	c.records[r.id] = r
	c.addCoverage(r)
	for i := range r.blocks {
		b := &r.blocks[i]
		b.Record = r.id
		delete(c.strays, b.ID)
		if h := c.holder[b.ID]; h != nil && h.id != r.id {
			c.doubled[b.ID] = true
		}
		if h := c.holder[b.ID]; h == nil || h.id == r.id || r.describesBetter(b.ID, h) {
			c.holder[b.ID] = r
		}
		c.maxOrder, c.maxGeneration = max(c.maxOrder, b.OrderHi), max(c.maxGeneration, b.Generation)
		c.intern(b)
	}
	if r.deletion != nil {
		c.maxGeneration = max(c.maxGeneration, r.deletion.Generation)
	}
	for _, x := range r.clean {
		c.maxGeneration = max(c.maxGeneration, x.Generation)
	}
}

func (c *Catalog) forget(r *commit) {
	delete(c.records, r.id)
	delete(c.lost, r.id)
	delete(c.damaged, r.id)
	delete(c.copied, r.id)
	c.forgetCoverage(r)
	for i := range r.blocks {
		if id := r.blocks[i].ID; c.holder[id] == r {
			delete(c.holder, id)
			delete(c.gone, id)
			if c.doubled[id] {
				c.rehold(id)
			}
		}
	}
}

// rehold finds another record of a block. mu must be held.
func (c *Catalog) rehold(id string) {
	for _, r := range c.records {
		if r.entry(id) != nil && (c.holder[id] == nil || r.describesBetter(id, c.holder[id])) {
			c.holder[id] = r
		}
	}
}

// entry returns the entry of a block, or nil.
func (r *commit) entry(id string) *Block {
	for i := range r.blocks {
		if r.blocks[i].ID == id {
			return &r.blocks[i]
		}
	}
	return nil
}

// rebuilt reports whether a repair has made the record from its block.
func (r *commit) rebuilt() bool { return len(r.blocks) == 1 && r.blocks[0].ID == r.id }

// describesBetter reports which of two records of a block counts. A rebuilt one does not know the true order
// number and generation.
func (r *commit) describesBetter(id string, o *commit) bool {
	if r.rebuilt() != o.rebuilt() {
		return o.rebuilt()
	}
	a, b := r.entry(id), o.entry(id)
	return cmp.Or(cmp.Compare(a.OrderHi, b.OrderHi), cmp.Compare(a.Generation, b.Generation), cmp.Compare(r.id, o.id)) > 0
}

// maxNames bounds the table of shared names. Beyond it, blocks keep strings of their own.
const maxNames = 1 << 16

// intern shares the names of tenants, which every block repeats.
func (c *Catalog) intern(b *Block) {
	one := func(s *string) {
		if known, ok := c.names[*s]; ok {
			*s = known
		} else if len(c.names) < maxNames {
			c.names[*s] = *s
		}
	}
	for i := range b.Tenants {
		one(&b.Tenants[i])
	}
	one(&b.FirstTenant)
	one(&b.LastTenant)
	one(&b.Group)
	one(&b.Policies)
}

// publish makes the records visible to queries. mu must be held, unless the catalogue is still being opened.
// Those who keep answers are told of the change under the same lock, and Covered takes it: what Covered says
// is in the bucket, they have been told. Without that, a kept answer could be given that lacks shipped rows.
func (c *Catalog) publish() {
	hidden := c.hidden(func(*commit) bool { return true })
	cancelled, clean := c.cancelled(), c.cleaned()
	v := &view{blocks: make([]Block, 0, len(c.records)), ids: make(map[string]bool, len(c.records)), byTenant: map[string]Deletions{}, requests: map[request]*Deletion{}}
	for _, r := range c.records {
		for i := range r.blocks {
			if _, gone := hidden[r.blocks[i].ID]; !gone && c.holder[r.blocks[i].ID] == r && !v.ids[r.blocks[i].ID] {
				b := r.blocks[i]
				b.Generation = max(b.Generation, clean[b.ID])
				v.blocks = append(v.blocks, b)
				v.ids[b.ID] = true
			}
		}
	}
	for _, d := range c.allDeletions() {
		v.requests[request{d.Tenant, d.Request}] = d
		if !cancelled[d.Generation] {
			v.deletions = append(v.deletions, d)
			v.byTenant[d.Tenant] = append(v.byTenant[d.Tenant], d)
		}
	}
	v.divide(c.records)
	v.unrolled = c.unrolled(v.ids)
	slices.SortFunc(v.blocks, compareBlocks)
	slices.SortFunc(v.rollups, compareBlocks)
	for _, b := range c.strays {
		v.strays = append(v.strays, b)
	}
	if old := c.view.Swap(v); old != nil && c.changes != nil {
		c.tell(old, v)
	}
	c.changed()
}

// hidden maps each block that a record of those that count replaces to the time of its first replacement. mu
// must be held.
func (c *Catalog) hidden(counts func(*commit) bool) map[string]int64 {
	at := map[string]int64{}
	for _, r := range c.records {
		if !counts(r) {
			continue
		}
		for _, id := range r.replaces {
			if t, ok := at[id]; !ok || r.committed < t {
				at[id] = r.committed
			}
		}
	}
	return at
}

// Has reports whether a block is visible.
func (c *Catalog) Has(id string) bool { return c.view.Load().ids[id] }

// Live returns the visible blocks in the order of their first times, without rollups. They must not be
// changed.
func (c *Catalog) Live() []Block { return c.view.Load().blocks }

// Overlapping returns the visible blocks of a signal that may hold rows of a tenant in a range, in the order
// of their first times, without rollups.
func (c *Catalog) Overlapping(r model.TimeRange, s model.Signal, tenant string) []Block {
	return overlapping(c.Live(), r, s, tenant)
}

func overlapping(blocks []Block, r model.TimeRange, s model.Signal, tenant string) []Block {
	var found []Block
	for _, b := range blocks {
		if b.Range.Min > r.Max {
			break
		}
		if b.Signal == s && b.Range.Overlaps(r) && b.HasTenant(tenant) {
			found = append(found, b)
		}
	}
	return found
}

// Missing returns an error of class corrupt if rows of a tenant in a range are missing from the catalogue:
// the record of their block is lost with its copies, and nothing but the object is left.
func (c *Catalog) Missing(r model.TimeRange, s model.Signal, tenant string) error {
	for _, b := range c.view.Load().strays {
		if b.Resolution == 0 && b.Signal == s && b.Range.Overlaps(r) && b.HasTenant(tenant) {
			return fmt.Errorf("%w: the commit record of %s is lost, so its rows cannot be read; to rebuild the record, run: shale inspect catalogue BUCKET --repair",
				model.ErrCorrupt, ObjectName(b.ID))
		}
	}
	return nil
}

// Deletions returns the deletions that a reader must apply to a block's rows of a tenant: those that the
// block still contains. Call it after the block was found in the catalogue, and within the grace of
// [Catalog.Expire].
func (c *Catalog) Deletions(b *Block, tenant string) Deletions {
	return c.view.Load().byTenant[tenant].Applying(b, tenant)
}

// Snapshot returns the visible blocks and all deletions at one moment. They must not be changed.
func (c *Catalog) Snapshot() ([]Block, Deletions) {
	v := c.view.Load()
	return v.blocks, v.deletions
}
