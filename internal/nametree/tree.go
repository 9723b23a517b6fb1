package nametree

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"sort"

	"github.com/shaledb/shale/internal/model"
)

// headerBytes is the size of the numbers of labels, states and edges, the root, and the number of names.
const headerBytes = 4*4 + 8

// Edge leads from a node of the tree to a child: its label, and the state of the child plus one. A leaf has
// child 0: a name ends there. A node that is both has two edges.
type Edge struct{ Label, Child uint32 }

// Tree is what a [Builder] has made. A state is the list of the edges of a node.
type Tree struct {
	// Labels and States number the labels and the states from 0.
	Labels, States int
	Root           uint32
	Names          uint64

	labelEnds, firsts, edges, text []byte
}

// Open returns the tree in b, which must come from a Builder, or have passed [Verify].
func Open(b []byte) (*Tree, error) {
	if len(b) < headerBytes {
		return nil, fmt.Errorf("%w: a tree of names has %d bytes", model.ErrCorrupt, len(b))
	}
	u := func(i int) int { return int(binary.LittleEndian.Uint32(b[4*i:])) }
	labels, states, edges := u(0), u(1), u(2)
	t := &Tree{Labels: labels, States: states, Root: uint32(u(3)), Names: binary.LittleEndian.Uint64(b[16:])}
	rest := b[headerBytes:]
	if len(rest) < 4*(labels+states+1)+8*edges {
		return nil, fmt.Errorf("%w: a tree of names ends early", model.ErrCorrupt)
	}
	t.labelEnds, rest = rest[:4*labels], rest[4*labels:]
	t.firsts, rest = rest[:4*(states+1)], rest[4*(states+1):]
	t.edges, t.text = rest[:8*edges], rest[8*edges:]
	return t, nil
}

// Label returns the text of a label.
func (t *Tree) Label(id uint32) []byte {
	begin := uint32(0)
	if id > 0 {
		begin = binary.LittleEndian.Uint32(t.labelEnds[4*(id-1):])
	}
	return t.text[begin:binary.LittleEndian.Uint32(t.labelEnds[4*id:])]
}

// List returns the numbers of the edges of a state: from, and up to before to.
func (t *Tree) List(state uint32) (from, to int) {
	return int(binary.LittleEndian.Uint32(t.firsts[4*state:])), int(binary.LittleEndian.Uint32(t.firsts[4*state+4:]))
}

// Edge returns an edge by its number.
func (t *Tree) Edge(i int) Edge {
	return Edge{binary.LittleEndian.Uint32(t.edges[8*i:]), binary.LittleEndian.Uint32(t.edges[8*i+4:])}
}

// Search returns the first edge in [from, to) that is not less than one with the label.
func (t *Tree) Search(from, to int, label []byte, branch bool) int {
	return from + sort.Search(to-from, func(i int) bool {
		e := t.Edge(from + i)
		return compareStep(t.Label(e.Label), e.Child != 0, label, branch) >= 0
	})
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

// Each calls emit with each name in the order of their bytes. The bytes are valid during the call.
func (t *Tree) Each(emit func(name []byte) error) error {
	_, err := t.each(nil, t.Root, emit)
	return err
}

func (t *Tree) each(path []byte, state uint32, emit func(name []byte) error) ([]byte, error) {
	length := len(path)
	from, to := t.List(state)
	for i := from; i < to; i++ {
		e := t.Edge(i)
		path = append(path[:length], t.Label(e.Label)...)
		var err error
		if e.Child == 0 {
			err = emit(path)
		} else {
			path, err = t.each(append(path, '.'), e.Child-1, emit)
		}
		if err != nil {
			return path, err
		}
	}
	return path, nil
}

// Verify verifies that the bytes are a tree, in which no walk leaves its bounds or goes round in a circle,
// edges are in order, and the number of names is as it says. Errors are of class corrupt. That the names are
// those of its part is another question.
func Verify(b []byte) error {
	t, err := Open(b)
	if err == nil {
		err = t.verify()
	}
	return err
}

func (t *Tree) verify() error {
	bad := func(what string) error { return fmt.Errorf("%w: tree of names: %s", model.ErrCorrupt, what) }
	edges := len(t.edges) / 8
	if t.States == 0 || int(t.Root) != t.States-1 {
		return bad("the last state is not the root")
	}
	end := uint32(0)
	for id := range t.Labels {
		next := binary.LittleEndian.Uint32(t.labelEnds[4*id:])
		if next < end || int64(next) > int64(len(t.text)) {
			return bad("labels are out of bounds")
		}
		if bytes.IndexByte(t.text[end:next], '.') >= 0 {
			return bad("a label has a dot")
		}
		end = next
	}
	if int(end) != len(t.text) || binary.LittleEndian.Uint32(t.firsts) != 0 {
		return bad("labels or states are out of bounds")
	}
	names := make([]uint64, t.States) // below each state
	for s := range t.States {
		from, to := t.List(uint32(s))
		if to < from || to > edges || to == from && (t.States > 1 || t.Names > 0) {
			return bad("edges are out of bounds")
		}
		for i := from; i < to; i++ {
			// A state comes after those of its children.
			e := t.Edge(i)
			if int(e.Label) >= t.Labels || int(e.Child) > s {
				return bad("an edge is out of bounds")
			}
			if i > from {
				last := t.Edge(i - 1)
				if compareStep(t.Label(last.Label), last.Child != 0, t.Label(e.Label), e.Child != 0) >= 0 {
					return bad("edges are out of order")
				}
			}
			more := uint64(1)
			if e.Child != 0 {
				more = names[e.Child-1]
			}
			if names[s] += more; names[s] < more || names[s] > math.MaxUint32 {
				return bad("it has more names than a part has series")
			}
		}
	}
	if _, to := t.List(uint32(t.States - 1)); to != edges || names[t.Root] != t.Names {
		return bad(fmt.Sprintf("it has %d names, and says %d", names[t.Root], t.Names))
	}
	return nil
}
