package nametree

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/zeebo/xxh3"

	"github.com/shaledb/shale/internal/model"
)

// Builder makes the tree of names that come in the order of their bytes. Nodes with equal lists of edges are
// one state. charge is asked for memory, and gets it back as a negative number; its error ends the build.
type Builder struct {
	text   []byte
	ends   []uint32 // of each label
	labels table
	edges  []Edge
	firsts []uint32 // first edge of each state
	states table
	open   []level // the nodes of the last name, from the root
	// Count is the number of names so far.
	Count         uint64
	charge        func(bytes int64) error
	charged       int64
	last, scratch []byte
}

// level is a node that is not complete yet.
type level struct {
	label uint32 // by which its parent leads to it
	end   int    // where its label ends in the name
	edges []Edge
}

// NewBuilder returns a Builder without names.
func NewBuilder(charge func(int64) error) *Builder {
	b := &Builder{charge: charge, open: []level{{}}}
	b.labels.grow(nil)
	b.states.grow(nil)
	return b
}

// Release gives the memory of the build back.
func (b *Builder) Release() { _ = b.charge(-b.charged) }

// Add adds a name. Names ascend.
func (b *Builder) Add(name []byte) error {
	shared := SharedLength(b.last, name)
	depth := 1
	for depth < len(b.open) && b.open[depth].end < shared {
		depth++
	}
	b.closeFrom(depth)
	begin := 0
	if depth > 1 {
		begin = b.open[depth-1].end + 1
	}
	for {
		i := bytes.IndexByte(name[begin:], '.')
		if i < 0 {
			break
		}
		b.push(b.intern(name[begin:begin+i]), begin+i)
		begin += i + 1
	}
	last := &b.open[len(b.open)-1]
	last.edges = append(last.edges, Edge{Label: b.intern(name[begin:])})
	b.last = append(b.last[:0], name...)
	// A few long names take as much as many short ones.
	if b.Count++; b.Count%4096 == 0 || int64(cap(b.text)) > b.charged+1<<20 {
		return b.account()
	}
	return nil
}

// SharedLength returns the number of bytes that two names share at their beginning.
func SharedLength(a, b []byte) int {
	n, i := min(len(a), len(b)), 0
	for ; i+8 <= n && binary.LittleEndian.Uint64(a[i:]) == binary.LittleEndian.Uint64(b[i:]); i += 8 {
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

// push opens a node below the last open one, in memory of an earlier one.
func (b *Builder) push(label uint32, end int) {
	if n := len(b.open); n < cap(b.open) {
		b.open = b.open[:n+1]
		b.open[n] = level{label, end, b.open[n].edges[:0]}
		return
	}
	b.open = append(b.open, level{label: label, end: end})
}

// closeFrom completes the open nodes from a depth on.
func (b *Builder) closeFrom(depth int) {
	for n := len(b.open) - 1; n >= depth; n-- {
		l := &b.open[n]
		parent := &b.open[n-1]
		parent.edges = append(parent.edges, Edge{l.label, b.state(l.edges) + 1})
		b.open = b.open[:n]
	}
}

// account charges the memory that the build has taken since.
func (b *Builder) account() error {
	n := int64(cap(b.text)) + 4*int64(cap(b.ends)+cap(b.firsts)+cap(b.labels.slots)+cap(b.states.slots)) + 8*int64(cap(b.edges))
	for i := range b.open {
		n += 8 * int64(cap(b.open[i].edges))
	}
	if len(b.edges) > math.MaxUint32-1<<20 || len(b.text) > math.MaxUint32-1<<20 {
		return fmt.Errorf("%w: the names of a part take more than 4 GiB", model.ErrLimit)
	}
	if err := b.charge(n - b.charged); err != nil {
		return err
	}
	b.charged = n
	return nil
}

func (b *Builder) label(id uint32) []byte {
	begin := uint32(0)
	if id > 0 {
		begin = b.ends[id-1]
	}
	return b.text[begin:b.ends[id]]
}

// intern returns the id of a label.
func (b *Builder) intern(label []byte) uint32 {
	h := xxh3.Hash(label)
	for at := b.labels.at(h); ; at = b.labels.after(at) {
		id := b.labels.slots[at]
		if id == 0 {
			b.text = append(b.text, label...)
			b.ends = append(b.ends, uint32(len(b.text)))
			b.labels.put(at, uint32(len(b.ends)), func(i uint32) uint64 { return xxh3.Hash(b.label(i)) })
			return uint32(len(b.ends) - 1)
		}
		if string(b.label(id-1)) == string(label) {
			return id - 1
		}
	}
}

// state returns the id of the state with a list of edges.
func (b *Builder) state(list []Edge) uint32 {
	h := b.hash(list)
	for at := b.states.at(h); ; at = b.states.after(at) {
		id := b.states.slots[at]
		if id == 0 {
			b.firsts = append(b.firsts, uint32(len(b.edges)))
			b.edges = append(b.edges, list...)
			b.states.put(at, uint32(len(b.firsts)), func(i uint32) uint64 { return b.hash(b.list(i)) })
			return uint32(len(b.firsts) - 1)
		}
		if equalEdges(b.list(id-1), list) {
			return id - 1
		}
	}
}

func (b *Builder) list(state uint32) []Edge {
	end := uint32(len(b.edges))
	if int(state)+1 < len(b.firsts) {
		end = b.firsts[state+1]
	}
	return b.edges[b.firsts[state]:end]
}

func (b *Builder) hash(list []Edge) uint64 {
	b.scratch = b.scratch[:0]
	for _, e := range list {
		b.scratch = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b.scratch, e.Label), e.Child)
	}
	return xxh3.Hash(b.scratch)
}

func equalEdges(a, b []Edge) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// Finish returns the bytes of the tree.
func (b *Builder) Finish() ([]byte, error) {
	b.closeFrom(1)
	root := b.state(b.open[0].edges)
	size := headerBytes + 4*(len(b.ends)+len(b.firsts)+1) + 8*len(b.edges) + len(b.text)
	if err := b.account(); err != nil {
		return nil, err
	}
	out := make([]byte, 0, size)
	for _, n := range []int{len(b.ends), len(b.firsts), len(b.edges), int(root)} {
		out = binary.LittleEndian.AppendUint32(out, uint32(n))
	}
	out = binary.LittleEndian.AppendUint64(out, b.Count)
	for _, e := range b.ends {
		out = binary.LittleEndian.AppendUint32(out, e)
	}
	for _, f := range b.firsts {
		out = binary.LittleEndian.AppendUint32(out, f)
	}
	out = binary.LittleEndian.AppendUint32(out, uint32(len(b.edges)))
	for _, e := range b.edges {
		out = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(out, e.Label), e.Child)
	}
	return append(out, b.text...), nil
}

// table is a hash table of ids plus one, with open addressing.
type table struct {
	slots []uint32
	used  int
}

func (t *table) at(hash uint64) int { return int(hash & uint64(len(t.slots)-1)) }
func (t *table) after(at int) int   { return (at + 1) & (len(t.slots) - 1) }

// put fills a free slot, and grows the table when it is three quarters full.
func (t *table) put(at int, id uint32, hash func(id uint32) uint64) {
	t.slots[at] = id
	if t.used++; 4*t.used > 3*len(t.slots) {
		t.grow(hash)
	}
}

func (t *table) grow(hash func(id uint32) uint64) {
	old := t.slots
	t.slots = make([]uint32, max(1024, 2*len(old)))
	for _, id := range old {
		if id == 0 {
			continue
		}
		at := t.at(hash(id - 1))
		for t.slots[at] != 0 {
			at = t.after(at)
		}
		t.slots[at] = id
	}
}
