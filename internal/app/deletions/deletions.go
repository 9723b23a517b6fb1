package deletions

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/journal/kafka"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/remote"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/decision"
	"github.com/shaledb/shale/internal/store/deletion"
	"github.com/shaledb/shale/internal/store/topics"
)

// Options build Deletions. Zero values take the defaults that are named.
type Options struct {
	Connection kafka.Connection
	// Epoch returns the one that takes writes. It fails while rows of an earlier one are on their way.
	Epoch func(context.Context) (*topics.Epoch, error)
	// GivenUp reports whether what was not shipped of an epoch is lost. Nil: of none.
	GivenUp func(epoch uint64) bool
	Bucket  bucket.Bucket
	Catalog *catalog.Catalog
	Filters deletion.Compiler
	// Version is what others can read of what this process writes, as [topics] counts it; 0: the newest.
	Version int
	// Most is the limit of deletions of a tenant that are not carried out yet; 0: nothing can be deleted.
	Most       int
	Registerer prometheus.Registerer
	// Settle is how old may be what a query knows of deletions (1 s).
	Settle time.Duration
}

// Deletions makes deletions, and tells queries of them. It is safe for concurrent use.
type Deletions struct {
	o   Options
	one model.Turn // held while a deletion is made: each counts the others

	made *prometheus.CounterVec

	asks model.Turn // held while the bucket is asked, so that one query asks for all
	// polled is when the last question began, and wall the same by the wall clock: the monotonic clock stops
	// while the machine sleeps.
	polled, wall time.Time
}

// New returns Deletions.
func New(o Options) *Deletions {
	if o.Version == 0 {
		o.Version = topics.Newest
	}
	if o.Settle <= 0 {
		o.Settle = time.Second
	}
	return &Deletions{o: o, one: model.NewTurn(), asks: model.NewTurn(), made: promauto.With(o.Registerer).NewCounterVec(prometheus.CounterOpts{
		Name: "shale_deletions_made_total", Help: "Deletions requested from this process while roles run in separate processes, by result: done or failed.",
	}, []string{"result"})}
}

// afterwards bounds the steps that follow the decision. They do not end with the client's request.
const afterwards = time.Minute

// Delete hides rows that were acknowledged before the call, on all processes, and lets compaction drop them
// from x.NotBefore on. It returns the request's id. After an error of class transient the deletion may be
// carried out nevertheless; repeating it is harmless.
func (d *Deletions) Delete(ctx context.Context, x deletion.Deletion) (request string, err error) {
	defer func() {
		result := "done"
		if err != nil {
			result = "failed"
		}
		d.made.WithLabelValues(result).Inc()
	}()
	id := make([]byte, 8)
	_, _ = rand.Read(id) // never fails
	x.Request = hex.EncodeToString(id)
	if err := d.commit(ctx, x); err != nil {
		return "", err
	}
	select {
	case <-time.After(d.o.Settle + d.o.Settle/10):
		return x.Request, nil
	case <-ctx.Done():
		return "", fmt.Errorf("%w: deletion %s is recorded, but other processes may not have noticed it yet: %w", model.ErrTransient, x.Request, ctx.Err())
	}
}

// commit makes a deletion. Other processes do not know it yet.
func (d *Deletions) commit(ctx context.Context, x deletion.Deletion) error {
	if err := x.Compile(d.o.Filters); err != nil {
		return err
	}
	if err := topics.NeedVersion(d.o.Version, topics.VersionDeletions, "a deletion"); err != nil {
		return err
	}
	c, err := x.Control()
	if err != nil {
		return err
	}
	if err := d.one.Take(ctx); err != nil {
		return fmt.Errorf("%w: waiting for another deletion: %w", model.ErrTransient, err)
	}
	defer d.one.Give()
	if err := d.room(x.Tenant); err != nil {
		return err
	}
	e, err := d.o.Epoch(ctx)
	if err != nil {
		return err
	}
	offsets, err := kafka.Order(ctx, d.o.Connection, e.Topic, e.ID, e.Partitions, &model.Batch{Tenant: x.Tenant, Signal: x.Signal, Control: c})
	if err != nil {
		return err
	}
	// Rows that another topic has taken meanwhile would count as rows from before the deletion.
	if next, err := topics.Next(ctx, d.o.Bucket, e.Number); err != nil || next != nil {
		return errors.Join(err, fmt.Errorf("%w: another topic may take writes; repeat the deletion, once kafka.topic is set to it", model.ErrTransient))
	}
	var fences []catalog.Fence
	for p, offset := range offsets {
		fences = append(fences, catalog.Fence{Node: topics.Node(int32(p)), Epoch: e.Number, Seq: topics.Sequence(offset)})
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterwards)
	defer cancel()
	decided, err := decision.Take(ctx, d.o.Bucket, x.Request, fences)
	switch {
	case err != nil:
		return fmt.Errorf("deletion %s may be carried out, or not: %w", x.Request, err)
	case !slices.Equal(decided, fences):
		return fmt.Errorf("deletion %s took too long and was given up: %w: repeat it", x.Request, model.ErrTransient)
	}
	if _, err := d.o.Catalog.Delete(ctx, catalog.Deletion{Deletion: x, Fences: fences}); err != nil {
		return fmt.Errorf("deletion %s is decided, and takes effect with the next ship: %w", x.Request, err)
	}
	return nil
}

// room refuses deletions while too many of a tenant are not carried out.
func (d *Deletions) room(tenant string) error {
	open := 0
	for _, r := range d.o.Catalog.Requests(tenant) {
		if !d.Processed(&r) {
			open++
		}
	}
	if open < d.o.Most {
		return nil
	}
	return &model.LimitError{Limit: "limits.deletions", Text: fmt.Sprintf("tenant %q has %d %s not carried out yet, and the limit is %d; wait for compaction, or raise limits.deletions", tenant, open, english.PluralWord(open, "deletion", ""), d.o.Most)}
}

// Processed reports whether no row that a deletion hides is left.
func (d *Deletions) Processed(r *catalog.Requested) bool {
	return r.Left == 0 && r.Due(time.Now().UnixNano()) && d.o.Catalog.Passed(r.Deletion, d.o.GivenUp)
}

// The reasons for which a deletion cannot be cancelled.
var (
	ErrUnknown = errors.New("there is no such deletion")
	ErrTooLate = errors.New("rows of the deletion may have been dropped")
)

// Cancel shows the rows of a deletion again. Once rows may have been dropped, that takes force, and shows
// those that are left. Other processes notice within the time in which they list the catalogue.
func (d *Deletions) Cancel(ctx context.Context, tenant, request string, s model.Signal, force bool) error {
	if err := d.one.Take(ctx); err != nil {
		return fmt.Errorf("%w: waiting for another deletion: %w", model.ErrTransient, err)
	}
	defer d.one.Give()
	if err := d.o.Catalog.Refresh(ctx); err != nil {
		return err
	}
	for _, r := range d.o.Catalog.Requests(tenant) {
		if r.Request != request || r.Signal != s {
			continue
		}
		if d.Processed(&r) || r.Due(time.Now().UnixNano()) && !force {
			return ErrTooLate
		}
		return d.o.Catalog.CancelDeletion(ctx, tenant, request)
	}
	return ErrUnknown
}

// Hiding returns the deletions of a tenant that a query must know which begins now. Others may be among them.
func (d *Deletions) Hiding(ctx context.Context, tenant string, s model.Signal) (all []remote.Deletion, err error) {
	if err := d.look(ctx); err != nil {
		return nil, err
	}
	for _, x := range d.o.Catalog.DeletionsOf(tenant) {
		if x.Signal != s || len(x.Fences) == 0 {
			continue
		}
		e, err := x.Entry()
		if err != nil {
			return nil, err
		}
		terms, err := json.Marshal(&e)
		if err != nil {
			return nil, fmt.Errorf("%w: deletion %s: %v", model.ErrInvalid, x.Request, err)
		}
		all = append(all, remote.Deletion{Terms: terms, Fence: func(node string, epoch uint64) uint64 {
			for _, f := range x.Fences {
				if f.Node == node && f.Epoch == epoch {
					return f.Seq
				}
			}
			return 0
		}})
	}
	return all, nil
}

// look reads new records, unless it did less than Settle ago or nothing can be deleted.
func (d *Deletions) look(ctx context.Context) error {
	if d.o.Most == 0 {
		return nil
	}
	if err := d.asks.Take(ctx); err != nil {
		return err
	}
	defer d.asks.Give()
	began := time.Now()
	wall := began.Round(0)
	if since := wall.Sub(d.wall); began.Sub(d.polled) < d.o.Settle && since >= 0 && since < d.o.Settle {
		return nil
	}
	if err := d.o.Catalog.PollDeletions(ctx); err != nil {
		return err
	}
	d.polled, d.wall = began, wall
	return nil
}
