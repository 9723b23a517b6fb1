package app

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/shaledb/shale/internal/app/progress"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/repair"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/head/metadata"
)

// catalogMemory is the folder in the data folder for copies of the commit records. It is a bucket of its own.
const catalogMemory = "remembered"

// lost knows which data queries lack, from the notes in the folder set-aside.
type lost struct {
	o     *EngineOptions
	notes atomic.Pointer[[]repair.Note]
}

func newLost(o *EngineOptions) *lost {
	l := &lost{o: o}
	l.notes.Store(new([]repair.Note))
	promauto.With(o.Registerer).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "shale_set_aside_files", Help: "Damaged or missing files of the data folder whose data queries lack, by the notes in the folder set-aside.",
	}, func() float64 { return float64(len(*l.notes.Load())) })
	return l
}

// read reads the notes once more and logs those that are new.
func (l *lost) read() {
	notes, err := repair.Notes(l.o.FS, l.o.DataDir)
	if err != nil {
		l.o.Logger.Error("cannot read the notes about files that were set aside: all results may lack data", "err", err)
		notes = append(notes, repair.Note{From: repair.Folder, Why: err.Error(), At: time.Now(), Lost: &repair.Lost{
			What: repair.Rows, Text: "rows of a file that was set aside, whose note cannot be read",
		}})
	}
	known := *l.notes.Load()
	var lacking []repair.Note
	for _, n := range notes {
		if n.Lost == nil {
			continue
		}
		lacking = append(lacking, n)
		if len(lacking) > len(known) {
			l.o.Logger.Warn("queries lack data of a file that was set aside; remove the note when you know of it",
				"from", n.From, "at", n.At, "lost", n.Lost.Text, "why", n.Why)
		}
	}
	l.notes.Store(&lacking)
}

// labels reports whether labels of series have been lost.
func (l *lost) labels() bool {
	for _, n := range *l.notes.Load() {
		if n.Lost.What == repair.Labels {
			return true
		}
	}
	return false
}

// warn adds to the cost of a query what its result may lack.
func (l *lost) warn(r *model.Request) {
	for _, n := range *l.notes.Load() {
		if n.Touches(r.Signal, r.Range) {
			r.Cost.Warnings.Add(n.Warning())
		}
	}
}

// warnOfMetadata adds to a cost that metric metadata is missing, until senders have repeated it.
func (l *lost) warnOfMetadata(cost *model.Cost, now int64) {
	for _, n := range *l.notes.Load() {
		if n.Lost.What == repair.Metadata && now-n.At.UnixNano() < int64(metadata.IdleAfter) {
			cost.Warnings.Add(n.Warning())
		}
	}
}

// elsewhere is what other processes have: see [progress.Settled] and [progress.Log.Lost]. Nil: nothing.
type elsewhere struct {
	settled func(ctx context.Context, tenants []string, s model.Signal, r model.TimeRange) (until int64, ok bool)
	lost    func() []catalog.GivenUp
}

// warn adds to the cost of a query what its result may lack.
func (e *Engine) warn(r *model.Request) {
	e.lost.warn(r)
	l := e.o.Tenants.write(r.Tenant)
	progress.Warn(r, e.elsewhere.lost, e.catalog, progress.Accepted{MaxAge: l.MaxAge, MaxFuture: l.MaxFuture})
}
