package names

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"sort"

	"github.com/shaledb/shale/internal/model"
)

// headerBytes is the size of the numbers of labels, states and edges, the root, and the number of names.
const headerBytes = 4*4 + 8

// index is the tree of the names of one part, as [builder] writes it. It exists in memory only.
type index struct {
	labelEnds, firsts, edges []byte
	text                     []byte
	labels                   int
	root                     uint32
	names                    uint64
}

func openIndex(b []byte) (*index, error) {
	if len(b) < headerBytes {
		return nil, fmt.Errorf("%w: an index of names has %d bytes", model.ErrCorrupt, len(b))
	}
	u := func(i int) int { return int(binary.LittleEndian.Uint32(b[4*i:])) }
	labels, states, edges := u(0), u(1), u(2)
	x := &index{labels: labels, root: uint32(u(3)), names: binary.LittleEndian.Uint64(b[16:])}
	rest := b[headerBytes:]
	if len(rest) < 4*(labels+states+1)+8*edges {
		return nil, fmt.Errorf("%w: an index of names ends early", model.ErrCorrupt)
	}
	x.labelEnds, rest = rest[:4*labels], rest[4*labels:]
	x.firsts, rest = rest[:4*(states+1)], rest[4*(states+1):]
	x.edges, x.text = rest[:8*edges], rest[8*edges:]
	return x, nil
}

func (x *index) label(id uint32) []byte {
	begin := uint32(0)
	if id > 0 {
		begin = binary.LittleEndian.Uint32(x.labelEnds[4*(id-1):])
	}
	return x.text[begin:binary.LittleEndian.Uint32(x.labelEnds[4*id:])]
}

// list returns the numbers of the edges of a state.
func (x *index) list(state uint32) (from, to int) {
	return int(binary.LittleEndian.Uint32(x.firsts[4*state:])), int(binary.LittleEndian.Uint32(x.firsts[4*state+4:]))
}

func (x *index) edge(i int) edge {
	return edge{binary.LittleEndian.Uint32(x.edges[8*i:]), binary.LittleEndian.Uint32(x.edges[8*i+4:])}
}

// compareStep compares edges as names with them compare: a dot follows the label of a branch.
func compareStep(a []byte, aBranch bool, b []byte, bBranch bool) int {
	n := min(len(a), len(b))
	if c := bytes.Compare(a[:n], b[:n]); c != 0 {
		return c
	}
	return following(a, n, aBranch) - following(b, n, bBranch)
}

func following(label []byte, n int, branch bool) int {
	switch {
	case n < len(label):
		return int(label[n])
	case branch:
		return '.'
	}
	return -1
}

// search returns the first edge in [from, to) that is not less than one with the label.
func (x *index) search(from, to int, label []byte, branch bool) int {
	return from + sort.Search(to-from, func(i int) bool {
		e := x.edge(from + i)
		return compareStep(x.label(e.label), e.child != 0, label, branch) >= 0
	})
}

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
	return w.below(x.root, g.first)
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
	from, to := w.list(state)
	if to, ok := w.g.anything(at); ok {
		return w.all(state, to)
	}
	n := w.g.only(at)
	switch {
	case n != nil && n.one:
		return w.exactly(from, to, []byte(n.literal), w.g.closure(at&^w.g.done()<<1))
	case n != nil && n.head != "":
		from = w.search(from, to, []byte(n.head), false)
	}
	for i := from; i < to; i++ {
		e := w.edge(i)
		label := w.label(e.label)
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
	from, to := w.list(state)
	for i := from; i < to; i++ {
		e := w.edge(i)
		if e.child == 0 && at&w.g.done() == 0 {
			continue
		}
		if err := w.enter(e, w.label(e.label), at); err != nil {
			return err
		}
	}
	return nil
}

// exactly enters the children with a label: a leaf, a branch, or both.
func (w *walk) exactly(from, to int, label []byte, at positions) error {
	for _, branch := range []bool{false, true} {
		i := w.search(from, to, label, branch)
		if i == to {
			continue
		}
		if e := w.edge(i); (e.child != 0) == branch && bytes.Equal(w.label(e.label), label) {
			if err := w.enter(e, label, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// enter moves to a child, after which the glob is at some positions.
func (w *walk) enter(e edge, label []byte, at positions) error {
	length := len(w.path)
	if w.depth > 0 {
		w.path = append(w.path, '.')
	}
	w.path = append(w.path, label...)
	w.depth++
	var err error
	if at&w.g.done() != 0 {
		err = w.take(e.child == 0)
	}
	if err == nil && e.child != 0 && at&^w.g.done() != 0 {
		err = w.below(e.child-1, at)
	}
	w.path = w.path[:length]
	w.depth--
	return err
}
