package creators

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/shaledb/shale/internal/dayfile"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/sketch"
)

const (
	// maxTenants bounds the tenants with lists of their own on a day. The others share one, whose name no
	// tenant can have. Together the lists take at most about 12 MB, with names of 100 bytes.
	maxTenants   = 200
	otherTenants = "\x00other"
	// olderOthers is the name of the shared list in files without otherTenants. A tenant may have it.
	olderOthers = "(other)"
	// perDay and perPeriod are the most names in a list.
	perDay, perPeriod = 128, 64
	// period is half of the time that counts as now.
	period = 10 * time.Minute
	// KeepDays is how many days are kept.
	KeepDays = 90
	// SaveEvery is how much a kill may lose.
	SaveEvery = time.Minute
	// maxName cuts names, which are label values of a few kilobytes at most.
	maxName = 200
)

// streamLabel names what a stream is of.
const streamLabel = "service_name"

// Options build a Table.
type Options struct {
	// FS and Dir are where days are kept; an empty Dir keeps none.
	FS         vfs.FS
	Dir        string
	Now        func() int64 // in Unix nanoseconds; nil: the clock of the machine
	Registerer prometheus.Registerer
	Logger     *slog.Logger // nil: no log
}

// Table has the counts. It is safe for concurrent use.
type Table struct {
	o      Options
	folder dayfile.Folder
	saved  prometheus.Gauge

	mu      sync.Mutex
	day     string
	tenants map[string]*tenant
	began   int64 // when the current period began
	unsaved bool
	// over is the day that has ended and is not saved yet.
	over *ended

	saving sync.Mutex // one writer of files at a time; taken before mu
}

// ended is a day with its counts.
type ended struct {
	day string
	document
}

// tenant has the counts of a tenant by signal.
type tenant struct {
	today [2]*sketch.Frequent
	// current and last are those of the running period and of the one before.
	current, last [2]*sketch.Frequent
}

func newTenant() *tenant {
	t := &tenant{}
	for i := range t.today {
		t.today[i] = sketch.NewFrequent(perDay)
	}
	t.turn()
	return t
}

// turn begins a period.
func (t *tenant) turn() {
	t.last = t.current
	for i := range t.current {
		t.current[i] = sketch.NewFrequent(perPeriod)
	}
}

// Created says what created series: the name of a metric, or of a service.
type Created struct {
	Name   string `json:"name"`
	Series uint64 `json:"series"`
}

// Counts are the creations of a tenant in some time.
type Counts struct {
	// Series counts the series that were created.
	Series uint64 `json:"series"`
	// Undercount is what the number of any name may be too low by.
	Undercount uint64 `json:"undercount"`
	// Names have the greatest numbers, greatest first. A series without a name counts for the empty one.
	Names []Created `json:"names"`
}

// document is a day in its file: tenants, and in each the signals.
type document map[string][2]Counts

// Open returns a table with the counts of today. A file that cannot be read does not prevent a start: then
// the day begins again.
func Open(o Options) *Table {
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixNano() }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	t := &Table{o: o, folder: dayfile.Folder{FS: o.FS, Dir: o.Dir, Days: KeepDays}, tenants: map[string]*tenant{}, began: o.Now()}
	f := promauto.With(o.Registerer)
	t.saved = f.NewGauge(prometheus.GaugeOpts{Name: "shale_creators_save_success", Help: "1 if the counts of created series were last saved without an error; while it is 0, a restart loses what came since."})
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_creators_tenants", Help: "Tenants that have a list of the metrics that create series today; the others share one."}, func() float64 {
		t.mu.Lock()
		defer t.mu.Unlock()
		return float64(len(t.tenants))
	})
	t.saved.Set(1)
	t.day = dayfile.Day(t.began)
	if o.Dir == "" {
		return t
	}
	d, err := t.load(t.day)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		o.Logger.Error("cannot read which metrics created series today: the counts begin again", "err", err)
	}
	for name, of := range d {
		own := newTenant() // for all that the file has, whether or not the shared list comes first
		t.tenants[name] = own
		for i := range of {
			listed := uint64(0)
			for _, c := range of[i].Names {
				own.today[i].Add([]byte(c.Name), c.Series)
				listed += c.Series
			}
			own.today[i].AddRest(max(of[i].Series, listed)-listed, of[i].Undercount)
		}
	}
	return t
}

// load reads a day. New files always have a shared list, so that a file without one is an older one.
func (t *Table) load(day string) (document, error) {
	var d document
	if err := t.folder.Load(day, &d); err != nil {
		return nil, err
	}
	rest, ok := d[otherTenants]
	if !ok {
		rest = d[olderOthers]
		delete(d, olderOthers)
	}
	if delete(d, otherTenants); rest[0].Series+rest[1].Series > 0 {
		d[otherTenants] = rest
	}
	return d, nil
}

// index is 0 for metrics and 1 for logs.
func index(s model.Signal) int {
	if s == model.Logs {
		return 1
	}
	return 0
}

// Observe counts the series of a durable batch that were new.
func (t *Table) Observe(b *model.Batch) {
	n := b.Labels.Len()
	if n == 0 {
		return
	}
	label := model.NameLabel
	if b.Signal == model.Logs {
		label = streamLabel
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turnLocked(t.o.Now())
	own, i := t.ofLocked(b.Tenant), index(b.Signal)
	for at := range n {
		name := b.Labels.At(at).Get(label)
		name = name[:min(len(name), maxName)]
		own.today[i].Add(name, 1)
		own.current[i].Add(name, 1)
	}
	t.unsaved = true
}

// ofLocked returns the counts of a tenant, or those that the others share.
func (t *Table) ofLocked(name string) *tenant {
	own := t.tenants[name]
	if own == nil && len(t.tenants) >= maxTenants && name != otherTenants {
		return t.ofLocked(otherTenants)
	}
	if own == nil {
		own = newTenant()
		t.tenants[name] = own
	}
	return own
}

// turnLocked begins a period, and a day, when their time has come.
func (t *Table) turnLocked(now int64) {
	// A day that is over stays so: the clock may step back.
	if day := dayfile.Day(now); day > t.day {
		if t.unsaved {
			t.over, t.unsaved = &ended{t.day, t.documentLocked()}, false
		}
		t.day, t.tenants, t.began = day, map[string]*tenant{}, now
		return
	}
	if past := now - t.began; past >= int64(period) || past < 0 {
		for _, own := range t.tenants {
			if own.turn(); past >= 2*int64(period) || past < 0 {
				own.last = [2]*sketch.Frequent{}
			}
		}
		t.began = now
	}
}

func (t *Table) documentLocked() document {
	d := document{otherTenants: {countsOf(nil, 0), countsOf(nil, 0)}} // always there: see load
	for name, own := range t.tenants {
		d[name] = [2]Counts{countsOf(own.today[0], perDay), countsOf(own.today[1], perDay)}
	}
	return d
}

func countsOf(f *sketch.Frequent, limit int) Counts {
	c := Counts{Names: []Created{}}
	if f == nil {
		return c
	}
	c.Series, c.Undercount = f.Total(), f.Undercount()
	for _, n := range f.Most(limit) {
		c.Names = append(c.Names, Created{n.Name, n.Count})
	}
	return c
}

// Run saves the counts each [SaveEvery] until the context ends, and then once more.
func (t *Table) Run(ctx context.Context) {
	tick := time.NewTicker(SaveEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
		t.Save()
		if ctx.Err() != nil {
			return
		}
	}
}

// Save writes what has changed to files. Writers of series do not wait for it.
func (t *Table) Save() {
	if t.o.Dir == "" {
		return
	}
	t.saving.Lock()
	defer t.saving.Unlock()
	t.mu.Lock()
	t.turnLocked(t.o.Now())
	over, today := t.over, (*ended)(nil)
	if t.unsaved {
		today = &ended{t.day, t.documentLocked()}
	}
	t.unsaved = false
	t.mu.Unlock()
	for _, d := range []*ended{over, today} {
		if d == nil {
			continue
		}
		err := t.folder.Save(d.day, d.document)
		t.mu.Lock()
		switch {
		case err != nil:
			t.unsaved = true
		case d == t.over:
			t.over = nil
		}
		t.mu.Unlock()
		if err != nil {
			t.saved.Set(0)
			t.o.Logger.Error("cannot save which metrics create series; will retry", "err", err)
			return
		}
		t.saved.Set(1)
	}
}

// Now returns what a tenant has created lately, and in how much time.
func (t *Table) Now(name string, s model.Signal, limit int) (Counts, time.Duration) {
	now := t.o.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turnLocked(now)
	over := time.Duration(now - t.began)
	own := t.tenants[name]
	if own == nil {
		return countsOf(nil, 0), over
	}
	i := index(s)
	both := sketch.NewFrequent(2 * perPeriod)
	for _, f := range []*sketch.Frequent{own.current[i], own.last[i]} {
		if f != nil {
			both.AddAll(f)
		}
	}
	if own.last[i] != nil {
		over += period
	}
	return countsOf(both, limit), over
}

// Day is what a tenant has created on a day.
type Day struct {
	Day string `json:"day"`
	Counts
}

// Days returns the days from one to another, newest first. A tenant without a list of its own on a day has no
// entry for it.
func (t *Table) Days(ctx context.Context, name string, s model.Signal, from, to string, limit int) ([]Day, error) {
	t.mu.Lock()
	t.turnLocked(t.o.Now())
	today, own := t.day, t.tenants[name]
	days := []Day{}
	if own != nil && from <= today && today <= to {
		days = append(days, Day{today, countsOf(own.today[index(s)], limit)})
	}
	t.mu.Unlock()
	if t.o.Dir == "" {
		return days, nil
	}
	kept, err := t.folder.List()
	if errors.Is(err, os.ErrNotExist) {
		return days, nil
	}
	for i := len(kept) - 1; i >= 0 && err == nil; i-- {
		day := kept[i]
		if day < from || day > to || day >= today {
			continue
		}
		var d document
		if d, err = t.load(day); err != nil {
			break
		}
		if of, ok := d[name]; ok {
			c := of[index(s)]
			c.Names = c.Names[:min(limit, len(c.Names))]
			days = append(days, Day{day, c})
		}
		err = ctx.Err()
	}
	return days, err
}
