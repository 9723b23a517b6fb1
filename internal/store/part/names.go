package part

import (
	"context"
	"fmt"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/nametree"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/lines"
	"github.com/shaledb/shale/internal/store/part/series"
)

// maker is what pages may be as well: a cache for what is made of the names of a tenant.
type maker interface {
	// Made returns what make has returned for the tenant, now or earlier; with a nil make, what is there, or
	// nil. Errors are not kept.
	Made(ctx context.Context, tenant string, make func(context.Context) ([]byte, error)) ([]byte, error)
}

// treePages is what pages may be as well: they keep trees that are verified.
type treePages interface {
	Tree(ctx context.Context, a file.Addr) ([]byte, error)
}

// decodeTree decodes a page with a tree of names.
func decodeTree(stored []byte) ([]byte, error) {
	tree, err := lines.DecodePage(stored)
	if err == nil {
		err = nametree.Verify(tree)
	}
	return tree, err
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

// treeShare is about what reading a tree takes for each byte that is stored of it: that byte, and what is
// decoded of it, which the cache of pages keeps.
const treeShare = 3

// Tree returns the tree of the names that is stored with them, which must not be changed; nil: there is none.
// It charges the quota while it reads. An error of class corrupt says that the tree is damaged: the names may
// be well.
func (n *Names) Tree(ctx context.Context, q *model.Quota) ([]byte, error) {
	at, ok, err := series.FindTree(ctx, n.reader.Reader, n.tenant)
	if err != nil || !ok {
		return nil, err
	}
	bytes := treeShare * int64(at.Len)
	if err := q.TakeBytes(bytes); err != nil {
		return nil, err
	}
	defer q.TakeBytes(-bytes)
	var tree []byte
	if p, ok := n.reader.Pages().(treePages); ok {
		tree, err = p.Tree(ctx, at)
	} else if tree, err = n.reader.Page(ctx, at); err == nil {
		err = nametree.Verify(tree)
	}
	if err != nil {
		return nil, fmt.Errorf("part: tree of names: %w", file.AtPage(at, err))
	}
	return tree, nil
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
