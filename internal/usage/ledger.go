package usage

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/bill"
	"github.com/shaledb/shale/internal/dayfile"
)

const (
	// maxTenants bounds the tenants with accounts of their own on a day: about 3 MB.
	maxTenants = 10_000
	// others is the account of all others, and Others is how it is shown. No tenant can have the first name, and
	// one may have the second.
	others = "\x00other"
	Others = "(other)"
	// KeepDays is how many days are kept.
	KeepDays = 90
	// SaveEvery is how much a kill may lose.
	SaveEvery = time.Minute
)

// Usage is what a tenant has used on a day.
type Usage struct {
	// Samples counts stored samples, histograms and exemplars.
	Samples   int64 `json:"samples"`
	Lines     int64 `json:"lines"`
	LineBytes int64 `json:"lineBytes"`
	// WriteRequests are those over HTTP, and WriteBytes their bytes, as sent and as decoded.
	WriteRequests int64 `json:"writeRequests"`
	WriteBytes    int64 `json:"writeBytes"`
	// Queries counts requests of all APIs that read.
	Queries int64 `json:"queries"`
	// BucketRequests and BytesRead are what queries read of the bucket. PagesCached are the pages that they
	// found in a cache or in the data folder, and PagesBucket those that they did not.
	BucketRequests int64 `json:"bucketRequests"`
	BytesRead      int64 `json:"bytesRead"`
	PagesCached    int64 `json:"pagesCached"`
	PagesBucket    int64 `json:"pagesBucket"`
	// Series is the greatest number of active series that was seen, and StoredBytes the newest size in the
	// bucket.
	Series      int64 `json:"series"`
	StoredBytes int64 `json:"storedBytes"`
}

// add adds counts. Series and sizes do not add up.
func (u *Usage) add(o *Usage) {
	u.Samples += o.Samples
	u.Lines += o.Lines
	u.LineBytes += o.LineBytes
	u.WriteRequests += o.WriteRequests
	u.WriteBytes += o.WriteBytes
	u.Queries += o.Queries
	u.BucketRequests += o.BucketRequests
	u.BytesRead += o.BytesRead
	u.PagesCached += o.PagesCached
	u.PagesBucket += o.PagesBucket
}

// Holding is what a tenant has now. Negative StoredBytes are not known.
type Holding struct{ Series, StoredBytes int64 }

// Options build a Ledger.
type Options struct {
	// FS and Dir are where days are kept; an empty Dir keeps none.
	FS  vfs.FS
	Dir string
	// Holdings returns what some tenants have now; it is called after each save, and may return some of it
	// with an error. nil: nothing is known.
	Holdings   func(ctx context.Context, tenants []string) (map[string]Holding, error)
	Prices     Prices
	Reads      bill.Prices
	Now        func() int64 // in Unix nanoseconds; nil: the clock of the machine
	Registerer prometheus.Registerer
	Logger     *slog.Logger // nil: no log
}

// Ledger has the accounts. It is safe for concurrent use.
type Ledger struct {
	o       Options
	folder  dayfile.Folder
	metrics *metrics
	saving  sync.Mutex // one writer of files at a time; taken before mu

	mu      sync.RWMutex
	day     string
	tenants map[string]*account
	// over is the day that has ended and is not saved yet.
	over    map[string]Usage
	overDay string
}

type account struct {
	mu sync.Mutex
	Usage
}

// change changes an account.
func (a *account) change(do func(*Usage)) {
	a.mu.Lock()
	do(&a.Usage)
	a.mu.Unlock()
}

// Open returns a ledger with the accounts of today. A file that cannot be read does not prevent a start: then
// the day begins again.
func Open(o Options) *Ledger {
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixNano() }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	l := &Ledger{o: o, folder: dayfile.Folder{FS: o.FS, Dir: o.Dir, Days: KeepDays}, tenants: map[string]*account{}, day: dayfile.Day(o.Now())}
	l.metrics = newMetrics(o.Registerer)
	if o.Dir == "" {
		return l
	}
	today, err := l.load(l.day)
	for name, u := range today {
		l.tenants[name] = &account{Usage: u}
	}
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			o.Logger.Error("cannot read what tenants have used today: the day begins again", "err", err)
		}
		l.beginDay()
	}
	return l
}

// beginDay opens the accounts that today begins with, from the newest day before.
func (l *Ledger) beginDay() {
	days, err := l.folder.List()
	for i := len(days) - 1; i >= 0 && err == nil; i-- {
		if days[i] >= l.day {
			continue
		}
		var before map[string]Usage
		if before, err = l.load(days[i]); err == nil {
			l.tenants = next(before)
			return
		}
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		l.o.Logger.Error("cannot read what tenants used on the last day: those that only store have no account yet", "err", err)
	}
}

// load reads the accounts of a day. Files of today's kind always have an account of all others. In older ones
// it has the name that is shown.
func (l *Ledger) load(day string) (map[string]Usage, error) {
	var all map[string]Usage
	if err := l.folder.Load(day, &all); err != nil {
		return nil, err
	}
	rest, ok := all[others]
	if !ok {
		rest = all[Others]
		delete(all, Others)
	}
	if delete(all, others); rest != (Usage{}) {
		all[others] = rest
	}
	return all, nil
}

// save writes the accounts of a day, and always that of all others: see load.
func (l *Ledger) save(day string, all map[string]Usage) error {
	all = maps.Clone(all)
	rest := all[others] // which may be zero
	all[others] = rest
	return l.folder.Save(day, all)
}

// of returns the account of a tenant. One that has none gets one if it is opened, and if there is room.
func (l *Ledger) of(tenant string, opened bool) *account {
	now := dayfile.Day(l.o.Now())
	l.mu.RLock()
	a := l.tenants[tenant]
	current := now <= l.day
	l.mu.RUnlock()
	if a != nil && current {
		return a
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turnLocked(now)
	if a = l.tenants[tenant]; a != nil {
		return a
	}
	if !opened || len(l.tenants) >= maxTenants {
		tenant = others
	}
	if a = l.tenants[tenant]; a == nil {
		a = new(account)
		l.tenants[tenant] = a
	}
	return a
}

// turnLocked begins a day. One that is over stays so: a caller may have looked at the clock before another
// one turned the day, and a clock may step back.
func (l *Ledger) turnLocked(day string) {
	if day <= l.day {
		return
	}
	l.over, l.overDay = l.copyLocked(), l.day
	l.day, l.tenants = day, next(l.over)
}

// next returns the accounts that a day begins with. Tenants that have written or stored something keep
// theirs.
func next(before map[string]Usage) map[string]*account {
	kept := make(map[string]*account, len(before))
	for name, u := range before {
		if u.Samples+u.Lines+u.StoredBytes > 0 {
			kept[name] = &account{Usage: Usage{StoredBytes: u.StoredBytes}}
		}
	}
	return kept
}

func (l *Ledger) copyLocked() map[string]Usage {
	all := make(map[string]Usage, len(l.tenants))
	for name, a := range l.tenants {
		a.mu.Lock()
		all[name] = a.Usage
		a.mu.Unlock()
	}
	return all
}

// Stored counts durable rows.
func (l *Ledger) Stored(tenant string, samples, lines, lineBytes int64) {
	if samples+lines == 0 {
		return
	}
	l.of(tenant, true).change(func(u *Usage) {
		u.Samples += samples
		u.Lines += lines
		u.LineBytes += lineBytes
	})
}

// Wrote counts a write request over HTTP, and its bytes.
func (l *Ledger) Wrote(tenant string, bytes int64) {
	l.of(tenant, false).change(func(u *Usage) {
		u.WriteRequests++
		u.WriteBytes += bytes
	})
}

// Queried counts a request that reads.
func (l *Ledger) Queried(tenant string) {
	l.of(tenant, false).change(func(u *Usage) { u.Queries++ })
}

// Read counts what a query has read.
func (l *Ledger) Read(tenant string, requests, bytes, cached, pages int64) {
	if requests|bytes|cached|pages == 0 {
		return
	}
	l.of(tenant, false).change(func(u *Usage) {
		u.BucketRequests += requests
		u.BytesRead += bytes
		u.PagesCached += cached
		u.PagesBucket += pages
	})
}

// Run saves the accounts each [SaveEvery] until the context ends. The owner saves them at the end.
func (l *Ledger) Run(ctx context.Context) {
	tick := time.NewTicker(SaveEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			l.Save(ctx)
		}
	}
}

// Save writes today's accounts to their file, and then finds out what tenants hold, for the next time: a slow
// bucket must not keep counts from the file.
func (l *Ledger) Save(ctx context.Context) {
	l.saving.Lock()
	defer l.saving.Unlock()
	l.write()
	l.hold(ctx)
	l.mu.RLock()
	today := l.copyLocked()
	l.mu.RUnlock()
	l.metrics.show(today, func(u Usage) float64 {
		t := Total{Usage: u, SeriesDays: u.Series, StoredByteDays: u.StoredBytes}
		return float64(l.o.Prices.Cost(&t, &l.o.Reads))
	})
}

// write saves today, and the day that has ended.
func (l *Ledger) write() {
	l.mu.Lock()
	l.turnLocked(dayfile.Day(l.o.Now()))
	over, overDay := l.over, l.overDay
	today, day := l.copyLocked(), l.day
	l.mu.Unlock()
	if l.o.Dir == "" {
		return
	}
	var err error
	if over != nil {
		if err = l.save(overDay, over); err == nil {
			l.mu.Lock()
			if l.overDay == overDay {
				l.over, l.overDay = nil, ""
			}
			l.mu.Unlock()
		}
	}
	if err = errors.Join(err, l.save(day, today)); err != nil {
		l.metrics.saved.Set(0)
		l.o.Logger.Error("cannot save what tenants have used; will retry", "err", err)
		return
	}
	l.metrics.saved.Set(1)
}

// hold notes what the tenants with accounts have now.
func (l *Ledger) hold(ctx context.Context) {
	if l.o.Holdings == nil || ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, SaveEvery) // the next save waits for this
	defer cancel()
	l.mu.RLock()
	names := make([]string, 0, len(l.tenants))
	for name := range l.tenants {
		names = append(names, name)
	}
	l.mu.RUnlock()
	holdings, err := l.o.Holdings(ctx, names)
	if err != nil && !errors.Is(err, context.Canceled) {
		l.o.Logger.Warn("cannot measure what tenants have stored; will retry", "err", err)
	}
	for name, h := range holdings {
		l.of(name, true).change(func(u *Usage) {
			u.Series = max(u.Series, h.Series)
			if h.StoredBytes >= 0 {
				u.StoredBytes = h.StoredBytes
			}
		})
	}
}
