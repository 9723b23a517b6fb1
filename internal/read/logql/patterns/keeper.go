package patterns

import (
	"log/slog"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
)

// Options build a Keeper.
type Options struct {
	// MaxBytes bounds the memory of patterns and of lines that wait to be mined.
	MaxBytes int64
	// Horizon returns the time before which lines of a tenant are hidden, and what hides more of some of its
	// streams, all in Unix nanoseconds; nil: none are hidden.
	Horizon func(tenant string, s model.Signal, now int64) (oldest int64, h *model.Horizon)
	// Whole says that nothing was stored before, so that the Keeper sees every line there is.
	Whole      bool
	Now        func() time.Time // nil means the machine's clock
	Registerer prometheus.Registerer
	Logger     *slog.Logger // nil: no log
}

// Keeper mines the lines that arrive. See gets them from pushes; one goroutine, which Close ends, mines them.
// If memory runs out, the tenant with the most patterns loses its oldest counts: first their resolution, then
// the counts. So for each tenant there is a time since when counts are complete.
//
// A panic costs the counts of the tenant whose lines or counts it came from, and nothing of others: see
// dropLocked.
type Keeper struct {
	o       Options
	metrics *metrics
	intake  intake
	done    sync.WaitGroup

	mu      sync.Mutex
	cutter  *Cutter
	tenants map[string]*tenant
	bytes   int64
	since   int64 // of tenants without counts, in Unix seconds
}

// tenant has the streams of a tenant that have counts. One that has lost them may stay for its since alone:
// see emptied.
type tenant struct {
	name    string
	streams map[*stream]struct{}
	bytes   int64
	// since is when counts are complete, and fineSince when they are fine, in Unix seconds.
	since, fineSince int64
}

// stream has the patterns of a stream, by level.
type stream struct {
	id     streamID
	labels model.Labels
	byLevel
	// The intake alone uses these: for each level, where in the waiting rows the last one is, and the one whose
	// turn it is to stand for another line.
	last, turn [len(levels)]int32
}

// streamBytes is about what a stream takes besides its labels and miners, and tenantBytes what a tenant takes
// besides its name and streams.
const (
	streamBytes = 448
	tenantBytes = 256
)

// New returns a Keeper, which must be closed.
func New(o Options) *Keeper {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	k := &Keeper{o: o, metrics: newMetrics(o.Registerer), cutter: NewCutter(), tenants: make(map[string]*tenant)}
	k.since = ceil(o.Now().Unix(), fine)
	if o.Whole {
		k.since = math.MinInt64
	}
	k.intake.open(o.MaxBytes)
	k.done.Go(k.run)
	return k
}

// Close ends the mining. What waits is lost.
func (k *Keeper) Close() {
	k.intake.close()
	k.done.Wait()
}

func ceil(n, unit int64) int64 { return (n + unit - 1) / unit * unit }

// run mines what comes until the Keeper is closed.
func (k *Keeper) run() {
	for {
		rows, ok := k.intake.wait()
		if !ok {
			return
		}
		k.mine(rows)
	}
}

// maxFuture is how far beyond the clock the lines of patterns may be.
const maxFuture = time.Hour

// portion is how many lines are mined before a query may look.
const portion = 256

// mine mines lines that have come.
func (k *Keeper) mine(rows *rows) {
	for from := 0; from < len(rows.list); from += portion {
		to := min(from+portion, len(rows.list))
		k.mu.Lock()
		for i := from; i < to; i++ {
			err := model.Caught(func() error {
				for ; i < to; i++ {
					k.mineLocked(&rows.list[i], rows.line(i))
				}
				return nil
			})
			if err != nil {
				k.dropLocked(rows.list[i].stream.id.tenant, err)
			}
		}
		k.shrinkLocked()
		k.mu.Unlock()
		k.metrics.mined.Add(float64(to - from))
	}
}

// dropLocked drops all counts of a tenant after a panic: it is not known what its streams and miners hold.
// No line that was counted is later than maxFuture, so its counts are complete again after that time. What
// other tenants share is right by construction: the intake knows no stream of the tenant any more, the memory
// is the sum of what the other tenants have, and the cutter gets new buffers.
func (k *Keeper) dropLocked(name string, err error) {
	k.metrics.failed.Inc()
	k.o.Logger.Error("patterns: lines cannot be mined; the patterns of their tenant are dropped and estimated, and its lines count again in an hour",
		"tenant", name, "err", err, "stack", model.StackOf(err))
	since := max(k.since, ceil(k.o.Now().Add(maxFuture).Unix()+1, fine))
	gone := k.intake.forgetTenant(name)
	if t := k.tenants[name]; t != nil {
		since = max(since, t.since)
		gone = slices.AppendSeq(gone, maps.Keys(t.streams))
		delete(k.tenants, name)
	}
	for _, s := range gone { // rows of these may wait
		s.byLevel = byLevel{}
	}
	k.cutter = k.cutter.renewed()
	k.bytes = 0
	for _, t := range k.tenants {
		k.bytes += t.bytes
	}
	k.newTenant(name, since)
}

// guarded runs what changes the counts of a tenant, which are dropped if it panics.
func (k *Keeper) guarded(t *tenant, change func()) {
	if err := model.Caught(func() error { change(); return nil }); err != nil {
		k.dropLocked(t.name, err)
	}
}

// newTenant makes a tenant known that has no streams yet.
func (k *Keeper) newTenant(name string, since int64) *tenant {
	t := &tenant{name: name, streams: make(map[*stream]struct{}), since: since, fineSince: math.MinInt64}
	k.tenants[name] = t
	k.charge(t, tenantBytes+int64(len(name)))
	return t
}

// emptied forgets a tenant that has lost its streams. Its since is then that of all tenants without counts.
// If it lies ahead, their lines would not count until then, so the tenant stays.
func (k *Keeper) emptied(t *tenant) {
	if t.since <= k.o.Now().Unix() {
		k.forgetTenant(t)
	}
}

func (k *Keeper) forgetTenant(t *tenant) {
	k.since = max(k.since, t.since)
	k.charge(t, -t.bytes)
	delete(k.tenants, t.name)
}

func (k *Keeper) mineLocked(r *row, line []byte) {
	s := r.stream
	t := k.tenants[s.id.tenant]
	since := k.since
	if t != nil {
		since = t.since
	}
	seconds := r.time / int64(time.Second)
	if seconds < max(since, 0) || seconds > k.o.Now().Add(maxFuture).Unix() {
		if s.byLevel == (byLevel{}) {
			k.intake.forget([]*stream{s})
		}
		return
	}
	if t == nil {
		t = k.newTenant(s.id.tenant, since)
	}
	begin := seconds - seconds%fine
	if begin < t.fineSince {
		begin = seconds - seconds%coarse
	}
	if _, listed := t.streams[s]; !listed {
		t.streams[s] = struct{}{}
		k.charge(t, streamBytes+int64(len(s.labels)))
	}
	m, bytes := s.miner(r.level)
	m.Add(k.cutter, line, uint32(begin), r.lines)
	k.metrics.forgotten.Add(float64(m.forgotten))
	m.forgotten = 0
	k.charge(t, m.bytes-bytes)
}

func (k *Keeper) charge(t *tenant, bytes int64) {
	t.bytes += bytes
	k.bytes += bytes
	k.metrics.bytes.Set(float64(k.bytes))
}

// Add adds the kept patterns of the streams of a tenant that satisfy the matchers. It returns the time since
// when they are complete, in Unix seconds. No older lines are added.
func (k *Keeper) Add(tenant string, ms []model.Matcher, to *Totals) (since int64, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.tenants[tenant]
	if t == nil {
		return k.since, nil
	}
	oldest, h := int64(math.MinInt64), (*model.Horizon)(nil)
	if k.o.Horizon != nil {
		oldest, h = k.o.Horizon(tenant, model.Logs, k.o.Now().UnixNano())
	}
	start := to.start
	defer func() { to.start = start }()
	for s := range t.streams {
		if s.matches(ms) {
			hidden := oldest
			if h != nil {
				hidden = max(hidden, h.Before(s.labels))
			}
			to.start = max(start, hidden/int64(time.Second))
			if err := s.addTo(to, t.since, t.fineSince); err != nil {
				return t.since, err
			}
		}
	}
	return t.since, nil
}

// Forget drops the counts of a tenant up to a time in Unix nanoseconds, or up to now. Queries then estimate
// these lines from a sample of what is stored. Deletions need it: which of the counted lines they have taken
// is not known.
func (k *Keeper) Forget(tenant string, until int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	until = min(until/int64(time.Second), k.o.Now().Unix())
	t := k.tenants[tenant]
	if t == nil { // lines that still wait must not count either
		k.since = max(k.since, ceil(until+1, fine))
		return
	}
	unit := int64(fine)
	if until < t.fineSince {
		unit = coarse
	}
	if since := ceil(until+1, unit); since > t.since {
		k.guarded(t, func() {
			t.since = since
			k.change(t, func(counts []bucket) []bucket { return forget(counts, uint32(max(0, min(since, math.MaxUint32)))) })
		})
	}
}

func (s *stream) matches(ms []model.Matcher) bool {
	for i := range ms {
		if !ms[i].Match(string(s.labels.Get(ms[i].Name))) {
			return false
		}
	}
	return true
}
