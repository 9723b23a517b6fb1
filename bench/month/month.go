package month

import (
	"context"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/compact"
)

// Intervals and graces of the server by default: the compactor's, retention's, and the longest query with a
// refresh of the catalogue.
const (
	compactEvery = 5 * time.Minute
	expireEvery  = 10 * time.Minute
	hiddenGrace  = 2*time.Minute + time.Minute
)

// The actors whose requests are counted apart.
const (
	byShips      = "ships"
	byMerges     = "merges"
	byCollector  = "collection"
	byRetention  = "retention"
	byStart      = "start"
	readWithDisk = "restart"
	readAnew     = "restart without its disk"
)

// Options say what to simulate.
type Options struct {
	Fleet Fleet
	Days  int
	// Retention is how long rows are kept (30 days); below 0: forever.
	Retention time.Duration
	// Latency is the time of a request during restarts.
	Latency time.Duration
	// Progress is called after each day; nil: no progress is shown.
	Progress func(Day)
}

// Day is the bucket at the end of a day, and what was done during the day.
type Day struct {
	Day int
	// Live are the blocks that count; Objects are all below blocks/, also hidden ones.
	Live, Objects, Records, Copies, Markers, Lists int
	Bytes                                          int64
	Ships, Merges                                  int
	// Requests are those of the day, by actor.
	Requests map[string]Requests
}

// All returns the number of objects, with the seed and its copy.
func (d *Day) All() int { return d.Objects + d.Records + d.Copies + d.Markers + d.Lists + 2 }

// Sum returns the requests of all actors.
func (d *Day) Sum() (sum Requests) {
	for _, r := range d.Requests {
		sum = sum.add(r, 1)
	}
	return sum
}

// Restart is what a start reads before the server answers.
type Restart struct {
	Name string
	Requests
	Seconds float64
}

// Result is a simulated month.
type Result struct {
	Days     []Day
	Restarts []Restart
}

// world is the server that is simulated.
type world struct {
	o         Options
	now       int64
	store     *store
	memory    *store
	catalog   *catalog.Catalog
	head      *head
	compactor *compact.Compactor
}

// collecting tells the store which requests are those of the collector.
type collecting struct {
	*catalog.Catalog
	store *store
}

func (c collecting) Collect(ctx context.Context, o catalog.CollectOptions) (catalog.Collected, error) {
	c.store.actor = byCollector
	defer func() { c.store.actor = byMerges }()
	return c.Catalog.Collect(ctx, o)
}

// Simulate runs the days.
func Simulate(ctx context.Context, o Options) (*Result, error) {
	if o.Retention == 0 {
		o.Retention = 30 * 24 * time.Hour
	}
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
	w := &world{o: o, now: begin, store: newStore(), memory: newStore(), head: newHead(&o.Fleet, begin)}
	if err := w.open(ctx); err != nil {
		return nil, err
	}
	var result Result
	before := w.store.spent()
	for d := 1; d <= o.Days; d++ {
		day := Day{Day: d, Requests: map[string]Requests{}}
		for end := begin + int64(d)*int64(24*time.Hour); w.now < end; {
			if err := w.step(ctx, &day); err != nil {
				return nil, fmt.Errorf("day %d, %s: %w", d, time.Unix(0, w.now).UTC().Format(time.TimeOnly), err)
			}
		}
		w.look(&day)
		after := w.store.spent()
		for actor, r := range after {
			day.Requests[actor] = r.add(before[actor], -1)
		}
		before = after
		result.Days = append(result.Days, day)
		if o.Progress != nil {
			o.Progress(day)
		}
	}
	for _, r := range []struct {
		name   string
		memory *store
	}{{readWithDisk, w.memory}, {readAnew, newStore()}} {
		restart, err := w.restart(ctx, r.name, r.memory)
		if err != nil {
			return nil, err
		}
		result.Restarts = append(result.Restarts, restart)
	}
	return &result, nil
}

func (w *world) open(ctx context.Context) (err error) {
	w.store.actor = byStart
	seed, err := catalog.EnsureSeed(ctx, w.store)
	if err != nil {
		return err
	}
	if w.catalog, err = w.openCatalog(ctx, w.memory); err != nil {
		return err
	}
	m := &merger{&w.o.Fleet, w.store}
	w.compactor, err = compact.New(compact.Options{
		Catalog: collecting{w.catalog, w.store}, Bucket: w.store, FS: vfs.NewMem(), Dir: "compact", Seed: seed, Predict: m.predict,
		MemoryBytes: memoryBytes, Garbage: catalog.CollectOptions{Grace: hiddenGrace}, Now: func() int64 { return w.now },
	})
	return err
}

func (w *world) openCatalog(ctx context.Context, memory *store) (*catalog.Catalog, error) {
	return catalog.Open(ctx, w.store, catalog.Options{
		Now: func() int64 { return w.now }, Memory: memory,
		Describe: func(_ context.Context, id string, _ int64) (catalog.Block, error) {
			return catalog.Block{}, fmt.Errorf("%w: the record of block %s is lost", model.ErrCorrupt, id)
		},
	})
}

// step lets the time of one run of the compactor pass.
func (w *world) step(ctx context.Context, d *Day) error {
	w.now += int64(compactEvery)
	w.store.actor = byShips
	ships, err := w.head.ship(ctx, w.catalog, w.store, w.now)
	if err != nil {
		return err
	}
	w.store.actor = byMerges
	done, err := w.compactor.RunOnce(ctx)
	if err != nil {
		return err
	}
	d.Ships, d.Merges = d.Ships+ships, d.Merges+done.Merges
	if w.now%int64(expireEvery) != 0 || w.o.Retention < 0 {
		return nil
	}
	w.store.actor = byRetention
	before := w.newest() - int64(w.o.Retention)
	return w.catalog.Expire(ctx, func(b *catalog.Block) bool { return b.Newest() < before }, hiddenGrace)
}

// newest returns the time of the newest row in the bucket, from which the server counts the age of rows.
func (w *world) newest() int64 {
	newest := w.now - int64(w.o.Retention)
	for _, b := range w.catalog.Live() {
		newest = max(newest, b.Range.Max)
	}
	return min(newest, w.now)
}

// look counts the objects.
func (w *world) look(d *Day) {
	d.Live = len(w.catalog.Live())
	d.Objects, d.Bytes = w.store.objects("blocks/")
	d.Records, _ = w.store.objects("catalog/")
	d.Copies, _ = w.store.objects("copies/catalog/")
	d.Markers, _ = w.store.objects("uploads/")
	d.Lists, _ = w.store.objects("collected/")
}

// restart opens the catalogue as a starting server does.
func (w *world) restart(ctx context.Context, name string, memory *store) (Restart, error) {
	w.store.actor, w.store.latency = name, w.o.Latency
	defer func() { w.store.latency = 0 }()
	began := time.Now()
	if _, err := catalog.Seed(ctx, w.store); err != nil {
		return Restart{}, err
	}
	c, err := w.openCatalog(ctx, memory)
	if err != nil {
		return Restart{}, err
	}
	if have, want := len(c.Live()), len(w.catalog.Live()); have != want {
		return Restart{}, fmt.Errorf("%s: %d blocks count, expected %d", name, have, want)
	}
	return Restart{Name: name, Requests: w.store.spent()[name], Seconds: time.Since(began).Seconds()}, nil
}
