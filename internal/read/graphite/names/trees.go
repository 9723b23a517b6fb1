package names

import (
	"context"
	"errors"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/nametree"
)

// treed is a set of names that may have a stored tree of them.
type treed interface {
	// Tree returns the tree, or nil. It charges the quota while it reads. An error of class corrupt says that
	// it is damaged: the names may be well.
	Tree(ctx context.Context, q *model.Quota) ([]byte, error)
}

// treesAtOnce is how many trees are read at one time, from a bucket perhaps. Each has at most 16 MiB.
const treesAtOnce = 4

// trees reads the trees of sets, the next ones while one is used.
type trees struct {
	ctx    context.Context
	cancel context.CancelFunc
	quota  *model.Quota
	sets   []model.NameSet
	asked  []chan tree // of the sets after those that next has returned
	begun  int
}

// tree is the index of a set, if it has one, or the error that ends the query.
type tree struct {
	index *index
	way   string
	err   error
}

func readTrees(ctx context.Context, sets []model.NameSet, q *model.Quota) *trees {
	t := &trees{sets: sets, quota: q}
	t.ctx, t.cancel = context.WithCancel(ctx)
	for range min(treesAtOnce, len(sets)) {
		t.begin()
	}
	return t
}

func (t *trees) begin() {
	s, c := t.sets[t.begun], make(chan tree, 1)
	t.asked = append(t.asked, c)
	t.begun++
	go func() {
		var x tree
		if err := model.Caught(func() error { x = treeOf(t.ctx, s, t.quota); return nil }); err != nil {
			x = tree{err: err}
		}
		c <- x
	}()
}

// next returns the tree of the next set, which is not used by another goroutine from then on.
func (t *trees) next() tree {
	x := <-t.asked[0]
	t.asked = t.asked[1:]
	if t.begun < len(t.sets) {
		t.begin()
	}
	return x
}

// close waits until no set is used.
func (t *trees) close() {
	t.cancel()
	for _, c := range t.asked {
		<-c
	}
}

// treeOf returns the tree that is stored with a set, or that was made of it. One that is damaged is left out.
func treeOf(ctx context.Context, s model.NameSet, q *model.Quota) tree {
	var b []byte
	var err error
	if t, ok := s.(treed); ok {
		b, err = t.Tree(ctx, q)
	}
	way := "scan"
	if errors.Is(err, model.ErrCorrupt) {
		way, b, err = "damaged", nil, nil
	}
	if b == nil && err == nil {
		b, err = s.Made(ctx, nil)
	}
	if err != nil || b == nil {
		return tree{way: way, err: err}
	}
	x, err := nametree.Open(b)
	return tree{&index{x}, "index", err}
}
