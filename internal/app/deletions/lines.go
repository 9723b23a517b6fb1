package deletions

import (
	"context"
	"errors"
	"time"

	"github.com/shaledb/shale/internal/api/loki"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql"
	"github.com/shaledb/shale/internal/store/deletion"
)

// Filter compiles the filter of a deletion.
func Filter(text string) (deletion.LineFilter, error) {
	t, err := logql.ParseLineTest(text)
	if err != nil {
		return nil, err
	}
	return func(l model.Labels) deletion.LineTest { return t.ForStream(l) }, nil
}

// OfLines returns the deletion of the lines of a query.
func OfLines(tenant, query string, start, end, notBefore int64) (*deletion.Deletion, error) {
	t, err := logql.ParseLineTest(query)
	if err != nil {
		return nil, err
	}
	d := &deletion.Deletion{Signal: model.Logs, Tenant: tenant, Range: model.TimeRange{Min: start, Max: end}, NotBefore: notBefore}
	for _, m := range t.Matchers() {
		d.Matchers = append(d.Matchers, deletion.Matcher{Name: m.Name, Op: m.Op, Value: m.Value})
	}
	if !t.All() {
		d.Filter = query
	}
	return d, nil
}

// Lines are the deletions of Loki's API.
type Lines struct {
	*Deletions
	// Period is how long a deletion can be cancelled.
	Period time.Duration
}

// Delete hides lines.
func (l Lines) Delete(ctx context.Context, tenant, query string, start, end int64) error {
	x, err := OfLines(tenant, query, start, end, time.Now().Add(l.Period).UnixNano())
	if err == nil {
		_, err = l.Deletions.Delete(ctx, *x)
	}
	return err
}

// Cancel shows the lines of a deletion again.
func (l Lines) Cancel(ctx context.Context, tenant, id string, force bool) error {
	err := l.Deletions.Cancel(ctx, tenant, id, model.Logs, force)
	switch {
	case errors.Is(err, ErrUnknown):
		return loki.ErrNoDeletion
	case errors.Is(err, ErrTooLate):
		return loki.ErrDeletionBegun
	}
	return err
}

// List returns the deletions of a tenant, also those that another process has made.
func (l Lines) List(ctx context.Context, tenant string) (all []loki.DeleteRequest, err error) {
	if err := l.look(ctx); err != nil {
		return nil, err
	}
	for _, r := range l.o.Catalog.Requests(tenant) {
		if r.Signal == model.Logs {
			all = append(all, loki.DeleteRequest{
				ID: r.Request, Query: r.Query(), Start: r.Range.Min, End: r.Range.Max, Created: r.Committed, Done: r.Total - r.Left, Total: r.Total, Processed: l.Processed(&r),
			})
		}
	}
	return all, nil
}

// CacheGeneration changes with each deletion.
func (l Lines) CacheGeneration() string { return l.o.Catalog.CacheGeneration() }
