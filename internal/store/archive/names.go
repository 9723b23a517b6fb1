package archive

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/part"
)

// blockNames are the names of a block. Its errors name the block.
type blockNames struct {
	*part.Names
	a  *Archive
	of *catalog.Block
}

// Range is [model.NameSet.Range].
func (n *blockNames) Range() model.TimeRange { return n.of.Range }

// Walk is [model.NameSet.Walk].
func (n *blockNames) Walk(ctx context.Context) model.NameWalk {
	return &blockWalk{n.Names.Walk(ctx), n}
}

// Tree is [part.Names.Tree].
func (n *blockNames) Tree(ctx context.Context, q *model.Quota) ([]byte, error) {
	tree, err := n.Names.Tree(ctx, q)
	if errors.Is(err, model.ErrCorrupt) {
		n.a.damage.tree(n.of, err)
	}
	return tree, err
}

// Each is [model.NameSet.Each].
func (n *blockNames) Each(ctx context.Context, emit func(name []byte) error) error {
	var refused error
	err := n.Names.Each(ctx, func(name []byte) error {
		refused = emit(name)
		return refused
	})
	if err == nil || refused != nil {
		return err
	}
	return n.a.damage.named(n.of, err)
}

type blockWalk struct {
	model.NameWalk
	of *blockNames
}

// Err is [model.NameWalk.Err].
func (w *blockWalk) Err() error {
	if err := w.NameWalk.Err(); err != nil {
		return w.of.a.damage.named(w.of.of, err)
	}
	return nil
}

// Names is Names of a name source of package read: the names of each block of the request's range. Where rows
// of whole series may be hidden, it lists the series that remain.
func (a *Archive) Names(ctx context.Context, req *model.Request) (sets []model.NameSet, release func(), err error) {
	if err := a.o.Catalog.Missing(req.Range, req.Signal, req.Tenant); err != nil {
		return nil, nil, err
	}
	blocks := a.blocks(req)
	listings, l := make([]*listing, len(blocks)), newLanes()
	release = func() {
		for _, ls := range listings {
			if ls != nil {
				<-ls.opened
				ls.close()
			}
		}
	}
	lists := make([]*model.NameList, len(blocks))
	var g errgroup.Group
	g.SetLimit(openAtOnce)
	for i := range blocks {
		listings[i] = &listing{of: &blocks[i], quota: req.Quota, opened: make(chan struct{}), hides: a.hidesSeries(&blocks[i], req)}
		g.Go(model.Catching(func() (err error) {
			ls := listings[i]
			defer close(ls.opened)
			if !ls.hides {
				ls.open(ctx, a, req, nil, l)
				return ls.err
			}
			lists[i], err = a.remaining(ctx, &blocks[i], req, l)
			return err
		}))
	}
	if err := g.Wait(); err != nil {
		release()
		for i, ls := range listings {
			if ls.err != nil {
				return nil, nil, a.damage.named(&blocks[i], ls.err)
			}
		}
		return nil, nil, err
	}
	for i, ls := range listings {
		if ls.hides {
			sets = append(sets, lists[i])
			continue
		}
		sets = append(sets, &blockNames{ls.block.Names(req.Tenant), a, &blocks[i]})
	}
	return sets, release, nil
}

// remaining lists the names of the series of a block that have rows left.
func (a *Archive) remaining(ctx context.Context, b *catalog.Block, req *model.Request, l lanes) (*model.NameList, error) {
	n := &model.NameList{Times: b.Range}
	err := a.walk(ctx, b, req, func(l model.Labels) error { return req.Quota.TakeBytes(n.Add(l)) }, l)
	if err != nil {
		return nil, a.damage.named(b, err)
	}
	n.Sort()
	return n, nil
}
