package answer

import (
	"container/list"
	"context"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
)

// State knows what changes.
type State interface {
	// Clock returns the number of the last change.
	Clock() uint64
	// Changed says why a response to some tenants, begun when the clock was at, may be another one now. The
	// empty text says that it is the same.
	Changed(at uint64, tenants []string, r *model.Reach) string
	// Look makes Changed know what others have written. It may wait, and returns a text as Changed does if that
	// cannot be known now. Changed must know it as soon as Look returns the empty text again.
	Look(ctx context.Context, tenants []string, r *model.Reach) string
}

// Ledger counts what the tier is worth. Its methods are called with the lock of the tier, and do not wait.
type Ledger interface {
	// Asked says whether an answer of so many bytes was found for a tenant. A miss has 0 bytes.
	Asked(tenant string, hit bool, bytes int64)
	// Kept and Left say that an answer came, or went, and whether it had been used in between.
	Kept(tenant string, bytes int64)
	Left(tenant string, bytes int64, used bool)
}

// Options build a Tier.
type Options struct {
	// MaxBytes bounds all answers. A tenant may have half, and one answer an eighth of it.
	MaxBytes int64
	// State knows what changes, and Causes are all the texts that it has for that.
	State  State
	Causes []string
	// Ledger may be nil.
	Ledger     Ledger
	Registerer prometheus.Registerer
}

// maxText bounds the text of one answer, whatever the size of the tier. A larger response is sent as it is
// computed.
const maxText = 4 << 20

// Tier holds answers. It is safe for concurrent use. The answer that was used longest ago leaves first: of
// its tenant if the tenant has its share, and of all otherwise.
type Tier struct {
	o       Options
	metrics *metrics

	mu      sync.Mutex
	entries map[Key]*entry
	recent  list.List // of *entry, most recent first
	owners  map[string]*owner
	bytes   int64 // of entries, and of those that have left and are still being read
}

// owner is a tenant, or several that are queried together.
type owner struct {
	bytes  int64
	recent list.List // of *entry, most recent first
}

type entry struct {
	key     Key
	answer  *Answer
	name    string // of the owner
	bytes   int64
	readers int
	gone    bool // it has left the tier
	used    bool
	// among and own are its places in the lists.
	among, own *list.Element
}

// New returns an empty tier.
func New(o Options) *Tier {
	t := &Tier{o: o, entries: make(map[Key]*entry), owners: make(map[string]*owner)}
	t.metrics = newMetrics(t)
	return t
}

// Clock returns the number of the last change. It is read before a response is computed.
func (t *Tier) Clock() uint64 { return t.o.State.Clock() }

// Changed reports whether a response may be another one by now.
func (t *Tier) Changed(at uint64, tenants []string, r *model.Reach) bool {
	return t.o.State.Changed(at, tenants, r) != ""
}

// MaxText returns the largest text that may be kept. Its compressed body must not take more than an eighth of
// the tier, which the largest texts do not that shrink to a tenth.
func (t *Tier) MaxText() int { return int(min(t.o.MaxBytes, maxText)) }

// Joined counts a request that got the response to another one.
func (t *Tier) Joined() { t.metrics.joined.Inc() }

// Reading is an answer that is being read. Done must be called.
type Reading struct {
	*Answer
	tier  *Tier
	entry *entry
}

// Get returns the answer to a request of some tenants, if there is one and it still holds.
func (t *Tier) Get(ctx context.Context, k Key, tenants []string) (Reading, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.lookLocked(ctx, k)
	if e == nil {
		t.asked(tenants[0], nil)
		return Reading{}, false
	}
	// State does not wait.
	if cause := t.o.State.Changed(e.answer.Clock, e.answer.Tenants, e.answer.Reach); cause != "" {
		t.metrics.stale[cause].Inc()
		t.drop(e)
		t.asked(tenants[0], nil)
		return Reading{}, false
	}
	e.used = true
	t.recent.MoveToFront(e.among)
	t.owners[e.name].recent.MoveToFront(e.own)
	t.asked(tenants[0], e)
	return t.read(e), true
}

// lookLocked returns the entry of a key, or nil. If the answer depends on what others write, it looks for
// changes first, without the lock.
func (t *Tier) lookLocked(ctx context.Context, k Key) *entry {
	e := t.entries[k]
	if e == nil {
		return nil
	}
	if _, ok := e.answer.Reach.Further(); !ok {
		return e
	}
	t.mu.Unlock()
	cause := t.o.State.Look(ctx, e.answer.Tenants, e.answer.Reach)
	t.mu.Lock()
	if e.gone || t.entries[k] != e {
		return nil // one that came meanwhile was not looked after
	}
	if cause == "" {
		return e
	}
	// It may hold all the same, so that it stays for the next request: Changed will know by then what was
	// written. A client that has left says nothing.
	if ctx.Err() == nil {
		t.metrics.stale[cause].Inc()
	}
	return nil
}

func (t *Tier) asked(tenant string, e *entry) {
	bytes := int64(0)
	if e == nil {
		t.metrics.misses.Inc()
	} else {
		t.metrics.hits.Inc()
		bytes = e.bytes
	}
	if t.o.Ledger != nil {
		t.o.Ledger.Asked(tenant, e != nil, bytes)
	}
}

func (t *Tier) read(e *entry) Reading {
	e.readers++
	return Reading{Answer: e.answer, tier: t, entry: e}
}

// Put keeps an answer if there is room for it.
func (t *Tier) Put(k Key, a *Answer) {
	bytes := a.bytes()
	if bytes > t.o.MaxBytes/8 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if old := t.entries[k]; old != nil {
		t.drop(old)
	}
	e := &entry{key: k, answer: a, name: strings.Join(a.Tenants, "|")}
	o := t.owners[e.name]
	if o == nil {
		o = new(owner)
		t.owners[e.name] = o
	}
	e.among, e.own = t.recent.PushFront(e), o.recent.PushFront(e)
	t.entries[k] = e
	t.grow(e, bytes)
	if t.o.Ledger != nil && !e.gone {
		t.o.Ledger.Kept(a.Tenants[0], bytes)
	}
}

// grow adds bytes to an entry, and makes room for them. The entry itself leaves last.
func (t *Tier) grow(e *entry, bytes int64) {
	e.bytes += bytes
	t.bytes += bytes
	if e.gone {
		return
	}
	o := t.owners[e.name]
	o.bytes += bytes
	for o.bytes > t.o.MaxBytes/2 {
		t.evict(o.recent.Back().Value.(*entry))
	}
	// Answers that have left and are still being read take room, too.
	for t.bytes > t.o.MaxBytes && t.recent.Len() > 0 {
		t.evict(t.recent.Back().Value.(*entry))
	}
}

func (t *Tier) evict(e *entry) {
	t.metrics.evicted.Inc()
	t.drop(e)
}

// drop takes an entry out of the tier.
func (t *Tier) drop(e *entry) {
	o := t.owners[e.name]
	t.recent.Remove(e.among)
	o.recent.Remove(e.own)
	if o.bytes -= e.bytes; o.recent.Len() == 0 {
		delete(t.owners, e.name)
	}
	delete(t.entries, e.key)
	if e.gone = true; e.readers == 0 {
		t.bytes -= e.bytes
	}
	if t.o.Ledger != nil {
		t.o.Ledger.Left(e.answer.Tenants[0], e.bytes, e.used)
	}
}

// Encoded is [Body.Encoded].
func (r *Reading) Encoded(enc Encoding) []byte {
	body, grown := r.Body.Encoded(enc)
	if grown > 0 && r.tier != nil {
		r.tier.mu.Lock()
		r.tier.grow(r.entry, grown)
		r.tier.mu.Unlock()
	}
	return body
}

// Done says that the answer has been sent.
func (r *Reading) Done() {
	if r.tier == nil {
		return
	}
	r.tier.mu.Lock()
	defer r.tier.mu.Unlock()
	if r.entry.readers--; r.entry.gone && r.entry.readers == 0 {
		r.tier.bytes -= r.entry.bytes
	}
}
