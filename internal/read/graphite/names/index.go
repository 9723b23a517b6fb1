package names

import (
	"bytes"
	"context"

	"github.com/shaledb/shale/internal/nametree"
)

// index is the tree of the names of one part.
type index struct{ *nametree.Tree }

// emit is called with the path of a node that satisfies a glob. leaf says that it is a name, and else that
// names begin with it. The path is valid during the call.
type emit func(path []byte, leaf bool) error

// walk is one glob on its way through an index.
type walk struct {
	*index
	g     *Glob
	emit  emit
	path  []byte
	depth int
	// barren are pairs of state and positions below which nothing is found. Many branches share them.
	barren map[below]struct{}
	// lone is the only node found below a pair, and last the path that was found last.
	lone     map[below]lone
	last     []byte
	lastLeaf bool
	found    int
	steps    int
	ctx      context.Context
}

// below is a state of the index and the positions of a glob there.
type below struct {
	state uint32
	at    positions
}

// lone is what follows a node in the path of the only node found below it.
type lone struct {
	rest string
	leaf bool
}

// find calls emit with all nodes that satisfy a glob.
func (x *index) find(ctx context.Context, g *Glob, emit emit) error {
	w := &walk{index: x, g: g, emit: emit, barren: make(map[below]struct{}), lone: make(map[below]lone), ctx: ctx}
	return w.below(x.Root, g.first)
}

// below looks among the children of a node.
func (w *walk) below(state uint32, at positions) error {
	key := below{state, at}
	if _, known := w.barren[key]; known {
		return nil
	}
	length := len(w.path)
	if one, known := w.lone[key]; known {
		w.path = append(w.path, one.rest...)
		err := w.take(one.leaf)
		w.path = w.path[:length]
		return err
	}
	if w.steps++; w.steps%1024 == 0 {
		if err := w.ctx.Err(); err != nil {
			return err
		}
	}
	found := w.found
	if err := w.children(state, at); err != nil {
		return err
	}
	switch w.found - found {
	case 0:
		w.barren[key] = struct{}{}
	case 1:
		w.lone[key] = lone{string(w.last[length:]), w.lastLeaf}
	}
	return nil
}

// take hands over the current path.
func (w *walk) take(leaf bool) error {
	w.found++
	w.last, w.lastLeaf = append(w.last[:0], w.path...), leaf
	return w.emit(w.path, leaf)
}

func (w *walk) children(state uint32, at positions) error {
	from, to := w.List(state)
	if to, ok := w.g.anything(at); ok {
		return w.all(state, to)
	}
	n := w.g.only(at)
	switch {
	case n != nil && n.one:
		return w.exactly(from, to, []byte(n.literal), w.g.closure(at&^w.g.done()<<1))
	case n != nil && n.head != "":
		from = w.Search(from, to, []byte(n.head), false)
	}
	for i := from; i < to; i++ {
		e := w.Edge(i)
		label := w.Label(e.Label)
		if n != nil && n.head != "" && !bytes.HasPrefix(label, []byte(n.head)) {
			break
		}
		if next := w.g.step(at, label); next != 0 {
			if err := w.enter(e, label, next); err != nil {
				return err
			}
		}
	}
	return nil
}

// all enters all children.
func (w *walk) all(state uint32, at positions) error {
	from, to := w.List(state)
	for i := from; i < to; i++ {
		e := w.Edge(i)
		if e.Child == 0 && at&w.g.done() == 0 {
			continue
		}
		if err := w.enter(e, w.Label(e.Label), at); err != nil {
			return err
		}
	}
	return nil
}

// exactly enters the children with a label: a leaf, a branch, or both.
func (w *walk) exactly(from, to int, label []byte, at positions) error {
	for _, branch := range []bool{false, true} {
		i := w.Search(from, to, label, branch)
		if i == to {
			continue
		}
		if e := w.Edge(i); (e.Child != 0) == branch && bytes.Equal(w.Label(e.Label), label) {
			if err := w.enter(e, label, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// enter moves to a child, after which the glob is at some positions.
func (w *walk) enter(e nametree.Edge, label []byte, at positions) error {
	length := len(w.path)
	if w.depth > 0 {
		w.path = append(w.path, '.')
	}
	w.path = append(w.path, label...)
	w.depth++
	var err error
	if at&w.g.done() != 0 {
		err = w.take(e.Child == 0)
	}
	if err == nil && e.Child != 0 && at&^w.g.done() != 0 {
		err = w.below(e.Child-1, at)
	}
	w.path = w.path[:length]
	w.depth--
	return err
}
