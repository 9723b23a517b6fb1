package part

import (
	"context"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/series"
)

// maker is what pages may be as well: a cache for what is made of the names of a tenant.
type maker interface {
	// Made returns what make has returned for the tenant, now or earlier; with a nil make, what is there, or
	// nil. Errors are not kept.
	Made(ctx context.Context, tenant string, make func(context.Context) ([]byte, error)) ([]byte, error)
}

// Names are the names of the tenant's series that have no other label. They are a [model.NameSet], whose
// pages are those of the reader.
func (r *Reader) Names(tenant string) *Names { return &Names{reader: r, tenant: tenant} }

// Names are names of a part.
type Names struct {
	reader *Reader
	tenant string
}

var _ model.NameSet = (*Names)(nil)

// Range is [model.NameSet.Range].
func (n *Names) Range() model.TimeRange {
	if t := n.reader.Meta().Tenant(n.tenant); t != nil {
		return t.Range
	}
	return model.TimeRange{Min: 0, Max: -1}
}

// Walk is [model.NameSet.Walk].
func (n *Names) Walk(ctx context.Context) model.NameWalk {
	return series.NewLoneNames(ctx, n.reader.Reader, n.tenant)
}

// Each is [model.NameSet.Each]. It prefetches all pages with names.
func (n *Names) Each(ctx context.Context, emit func(name []byte) error) error {
	if err := n.reader.FetchValues(ctx, n.tenant, model.NameLabel); err != nil {
		return err
	}
	w := series.NewLoneNames(ctx, n.reader.Reader, n.tenant)
	for i, ok := 0, w.Seek(nil); ok; ok = w.Next() {
		if i++; i%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := emit(w.Name()); err != nil {
			return err
		}
	}
	return w.Err()
}

// Made is [model.NameSet.Made].
func (n *Names) Made(ctx context.Context, make func(context.Context) ([]byte, error)) ([]byte, error) {
	if m, ok := n.reader.Pages().(maker); ok {
		return m.Made(ctx, n.tenant, make)
	}
	if make == nil {
		return nil, nil
	}
	return make(ctx)
}
