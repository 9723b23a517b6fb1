package app

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/shaledb/shale/internal/api/loki"
	"github.com/shaledb/shale/internal/app/deletions"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/patterns"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/deletion"
)

// lineFilter compiles the filter of a deletion.
var lineFilter = deletions.Filter

// deleter tells the catalogue of the deletions of the head's journal.
type deleter struct{ e *Engine }

func (d deleter) Delete(ctx context.Context, seq uint64, x *deletion.Deletion) error {
	node, epoch := d.e.head.Journal()
	_, err := d.e.catalog.Delete(ctx, catalog.Deletion{Deletion: *x, Fences: []catalog.Fence{{Node: node, Epoch: epoch, Seq: seq}}})
	return err
}

func (d deleter) Cancel(ctx context.Context, tenant, request string) error {
	return d.e.catalog.CancelDeletion(ctx, tenant, request)
}

// Delete hides rows that were acknowledged before the call, and lets compaction drop them from d.NotBefore
// on. It returns the request's id once no query shows the rows any more, whatever crashes. After an error of
// class transient the deletion may be carried out nevertheless; repeating it is harmless.
func (e *Engine) Delete(ctx context.Context, d deletion.Deletion) (request string, err error) {
	if err := e.Writable(); err != nil {
		return "", err
	}
	id := make([]byte, 8)
	_, _ = rand.Read(id) // never fails
	d.Request = hex.EncodeToString(id)
	if err := d.Compile(lineFilter); err != nil {
		return "", err
	}
	c, err := d.Control()
	if err != nil {
		return "", err
	}
	e.deleting.Lock()
	defer e.deleting.Unlock()
	if err := e.roomToDelete(d.Tenant); err != nil {
		return "", err
	}
	if err := e.journal.Append(ctx, &model.Batch{Tenant: d.Tenant, Signal: d.Signal, Control: c}); err != nil {
		return "", err
	}
	// From here on the head hides its rows. Blocks follow now, or with the next ship.
	if err := e.head.CommitDeletions(ctx); err != nil {
		return "", fmt.Errorf("deletion %s is recorded locally; writing it to the bucket failed and will be retried: %w", d.Request, err)
	}
	return d.Request, nil
}

// roomToDelete refuses deletions while too many of a tenant are not carried out: every query has to look for
// the rows of each.
func (e *Engine) roomToDelete(tenant string) error {
	open := 0
	for _, r := range e.Deletions(tenant, 0) {
		if !r.Processed {
			open++
		}
	}
	most := e.o.Head.Deletion.Deletions
	if most == 0 || open < most {
		return nil
	}
	return &model.LimitError{Limit: "limits.deletions", Text: fmt.Sprintf("tenant %q has %d %s not carried out yet, and the limit is %d; wait for compaction, or raise limits.deletions", tenant, open, english.PluralWord(open, "deletion", ""), most)}
}

// foreignDeletion is how long the deletions of journals that are not this folder's are kept.
const foreignDeletion = 30 * 24 * time.Hour

// holdsRowsOf reports whether rows that a deletion hides may still come to the bucket.
func (e *Engine) holdsRowsOf(d *catalog.Deletion) bool {
	node, epoch := e.head.Journal()
	for _, f := range d.Fences {
		if (f.Node != node || f.Epoch != epoch) && e.now()-d.Committed < int64(foreignDeletion) {
			return true
		}
	}
	return e.head.Holds(d.Request)
}

// Requested is a deletion as lists show it.
type Requested struct {
	catalog.Requested
	// Processed says that the rows are gone for good.
	Processed bool
}

// Deletions returns the deletions of a tenant and a signal, or of all signals (0), oldest first.
func (e *Engine) Deletions(tenant string, s model.Signal) []Requested {
	var all []Requested
	for _, r := range e.catalog.Requests(tenant) {
		if s == 0 || r.Signal == s {
			done := r.Left == 0 && r.Due(e.now()) && !e.head.Holds(r.Request)
			all = append(all, Requested{r, done})
		}
	}
	return all
}

// deletionStates counts the deletions of all tenants by their state, for metrics.
type deletionStates struct {
	e    *Engine
	desc *prometheus.Desc

	mu      sync.Mutex
	counted time.Time
	states  map[string]int
}

// The states of deletions.
const (
	deletionReceived   = "received"
	deletionProcessing = "processing"
	deletionProcessed  = "processed"
)

func registerDeletionStates(e *Engine) {
	if e.o.Registerer == nil {
		return
	}
	e.o.Registerer.MustRegister(&deletionStates{e: e, desc: prometheus.NewDesc("shale_deletions",
		"Deletions by state: received (can still be cancelled), processing (compaction is to drop rows), processed (no row is left).", []string{"state"}, nil)})
}

// Describe sends the description of the metric.
func (d *deletionStates) Describe(to chan<- *prometheus.Desc) { to <- d.desc }

// countEvery bounds how often deletions are counted, since each is compared with all blocks.
const countEvery = 30 * time.Second

// Collect sends the counts.
func (d *deletionStates) Collect(to chan<- prometheus.Metric) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := time.Now(); d.states == nil || now.Sub(d.counted) > countEvery {
		d.counted, d.states = now, map[string]int{deletionReceived: 0, deletionProcessing: 0, deletionProcessed: 0}
		for _, tenant := range d.e.catalog.DeletionTenants() {
			for _, r := range d.e.Deletions(tenant, 0) {
				d.states[d.e.deletionState(&r)]++
			}
		}
	}
	for state, n := range d.states {
		to <- prometheus.MustNewConstMetric(d.desc, prometheus.GaugeValue, float64(n), state)
	}
}

func (e *Engine) deletionState(r *Requested) string {
	switch {
	case r.Processed:
		return deletionProcessed
	case r.Due(e.now()):
		return deletionProcessing
	}
	return deletionReceived
}

// The reasons for which a deletion cannot be cancelled.
var (
	errNoDeletion = errors.New("there is no such deletion")
	errTooLate    = errors.New("rows of the deletion may have been dropped")
)

// CancelDeletion shows the rows of a deletion again. Once rows may have been dropped, that takes force, and
// shows those that are left.
func (e *Engine) CancelDeletion(ctx context.Context, tenant, request string, s model.Signal, force bool) error {
	if err := e.Writable(); err != nil {
		return err
	}
	e.deleting.Lock()
	defer e.deleting.Unlock()
	var found *Requested
	for _, r := range e.Deletions(tenant, s) {
		if r.Request == request {
			found = &r
		}
	}
	switch {
	case found == nil:
		return errNoDeletion
	case found.Processed || found.Due(e.now()) && !force:
		return errTooLate
	}
	c, err := deletion.Cancel(request)
	if err != nil {
		return err
	}
	if err := e.journal.Append(ctx, &model.Batch{Tenant: tenant, Signal: found.Signal, Control: c}); err != nil {
		return err
	}
	if err := e.head.CommitDeletions(ctx); err != nil {
		return err
	}
	// The head may have forgotten a deletion whose rows are all in the bucket.
	return e.catalog.CancelDeletion(ctx, tenant, request)
}

// checkControl makes sure that a control record can be applied, before the start goes on.
func checkControl(seq uint64, b *model.Batch) error {
	if b.Control.Kind == 0 {
		return nil
	}
	if _, _, err := deletion.ParseControl(b.Control, lineFilter); err != nil {
		return fmt.Errorf("record %d of the journal: %w", seq, err)
	}
	return nil
}

// deletePromSeries is the deletion of Prometheus' API, which cannot be cancelled.
func deletePromSeries(e interface {
	Delete(ctx context.Context, d deletion.Deletion) (string, error)
}) func(ctx context.Context, tenant string, matchers []*labels.Matcher, start, end int64) error {
	return func(ctx context.Context, tenant string, matchers []*labels.Matcher, start, end int64) error {
		d := deletion.Deletion{Signal: model.Metrics, Tenant: tenant, Range: model.TimeRange{Min: start, Max: end}}
		for _, m := range matchers {
			d.Matchers = append(d.Matchers, deletion.Matcher{Name: m.Name, Op: model.MatchOp(m.Type), Value: m.Value})
		}
		if len(d.Matchers) == 0 {
			d.Matchers = []deletion.Matcher{{}}
		}
		_, err := e.Delete(ctx, d)
		return err
	}
}

// lineDeletions are the deletions of Loki's API.
type lineDeletions struct {
	e    *Engine
	kept *patterns.Keeper
}

func (l lineDeletions) Delete(ctx context.Context, tenant, query string, start, end int64) error {
	d, err := deletions.OfLines(tenant, query, start, end, l.e.now()+int64(l.e.o.Head.Deletion.CancelPeriod))
	if err != nil {
		return err
	}
	if _, err = l.e.Delete(ctx, *d); err == nil {
		l.kept.Forget(tenant, end)
	}
	return err
}

func (l lineDeletions) List(_ context.Context, tenant string) (all []loki.DeleteRequest, err error) {
	for _, r := range l.e.Deletions(tenant, model.Logs) {
		all = append(all, loki.DeleteRequest{
			ID: r.Request, Query: r.Query(), Start: r.Range.Min, End: r.Range.Max, Created: r.Committed,
			Done: r.Total - r.Left, Total: r.Total, Processed: r.Processed,
		})
	}
	return all, nil
}

func (l lineDeletions) Cancel(ctx context.Context, tenant, id string, force bool) error {
	err := l.e.CancelDeletion(ctx, tenant, id, model.Logs, force)
	switch {
	case errors.Is(err, errNoDeletion):
		return loki.ErrNoDeletion
	case errors.Is(err, errTooLate):
		return loki.ErrDeletionBegun
	}
	return err
}

func (l lineDeletions) CacheGeneration() string { return l.e.catalog.CacheGeneration() }

func (e *Engine) now() int64 {
	if e.o.Now != nil {
		return e.o.Now()
	}
	return time.Now().UnixNano()
}
