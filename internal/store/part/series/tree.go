package series

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sort"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/nametree"
	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
)

// TreeSection holds trees of the names of series that have no other label, a page for each tenant that has
// many. A query of Graphite reads one in place of all names.
var TreeSection = &file.Section{Number: 7, Kind: 5, Name: "trees", Form: file.PairEntries, Optional: true}

const (
	// LeastNames is how many names a tenant has of which there is a tree: fewer are looked through in
	// milliseconds.
	LeastNames = 20_000
	// maxTreeMemory bounds the memory for making a tree.
	maxTreeMemory = 32 << 20
	// maxBytesPerName bounds a tree. One with more saves too little: names that share no branches are nearly
	// all there, and looking through them takes a microsecond for a few.
	maxBytesPerName = 8
)

var errNoTree = errors.New("names share too little for a tree")

// writeTree writes the tree of the current tenant, whose pairs are given in order. It writes none if the
// tenant has few names, or if they share too little.
func (p *postingWriter) writeTree(order []valuePiece) error {
	if !p.w.Dense() || p.w.Meta().Signal != model.Metrics || p.postings.lone.count < max(p.w.Sizes.LeastNames, 1) {
		return nil
	}
	used := int64(0)
	b := nametree.NewBuilder(func(bytes int64) error {
		if used += bytes; used > maxTreeMemory {
			return errNoTree
		}
		return nil
	})
	for i := range order {
		if !p.postings.lone.has(order[i].id) {
			continue
		}
		if err := b.Add(p.postings.value(p.postings.pairs.get(order[i].id))); err != nil {
			return noTree(err)
		}
	}
	tree, err := b.Finish()
	if err != nil || len(tree) > file.MaxPageBytes || uint64(len(tree)) > b.Count*maxBytesPerName+file.PageBytes {
		return noTree(err)
	}
	p.w.Payload = append(p.w.Payload[:0], tree...)
	return p.w.AddPage(TreeSection, p.w.TextCodec(), file.Entry{Tenant: p.page.tenant})
}

func noTree(err error) error {
	if errors.Is(err, errNoTree) {
		return nil
	}
	return err
}

// FindTree returns the page with the tree of a tenant. It reports false if there is none.
func FindTree(ctx context.Context, r *file.Reader, tenant string) (file.Addr, bool, error) {
	tenants := r.Meta().Tenants
	ordinal := sort.Search(len(tenants), func(i int) bool { return tenants[i].Name >= tenant })
	if ordinal == len(tenants) || tenants[ordinal].Name != tenant {
		return file.Addr{}, false, nil
	}
	w := file.NewWalk(ctx, r, TreeSection)
	e, err := w.Last(func(e *file.Entry) bool { return e.Tenant > uint32(ordinal) })
	if err != nil || e == nil || e.Tenant != uint32(ordinal) {
		return file.Addr{}, false, err
	}
	return e.Addr, true, nil
}

// CheckTrees compares the names in trees with the postings.
func CheckTrees(c *file.Checking) error {
	last := -1
	for i := range c.Entries[TreeSection.Number] {
		e := &c.Entries[TreeSection.Number][i]
		if int(e.Tenant) <= last || len(e.Name)+len(e.Value) > 0 {
			return file.AtPage(e.Addr, column.Corrupt("entry of a tree is out of order, or has a name"))
		}
		last = int(e.Tenant)
		b, err := c.Reader.Page(c.Ctx, e.Addr)
		if err == nil {
			err = nametree.Verify(b)
		}
		if err == nil {
			err = checkTree(c, b, c.Reader.Meta().Tenants[e.Tenant].Name)
		}
		if err != nil {
			return file.AtPage(e.Addr, err)
		}
	}
	return nil
}

func checkTree(c *file.Checking, b []byte, tenant string) error {
	tree, err := nametree.Open(b)
	if err != nil {
		return err
	}
	names := NewLoneNames(c.Ctx, c.Reader, tenant)
	ok := names.Seek(nil)
	err = tree.Each(func(name []byte) error {
		if names.Err() == nil && (!ok || !bytes.Equal(name, names.Name())) {
			return column.Corrupt("the tree has the name %q, which does not stand there among the names of tenant %q", name, tenant)
		}
		ok = names.Next()
		return names.Err()
	})
	switch {
	case names.Err() != nil:
		return names.Err()
	case err != nil:
		return err
	case ok:
		return column.Corrupt("the tree lacks the name %q of tenant %q", names.Name(), tenant)
	}
	return nil
}

// DumpTree shows a tree.
func DumpTree(a *file.Annotator) {
	u32 := func(what string) uint64 {
		if b := a.Raw(4, what); b != nil {
			return uint64(binary.LittleEndian.Uint32(b))
		}
		return 0
	}
	labels, states, edges := u32("labels"), u32("states"), u32("edges")
	u32("state of the root")
	a.Raw(8, "number of names")
	a.Raw(4*labels, "where the text of each label ends")
	for i := uint64(0); i <= states && !a.Scan.Bad; i++ {
		u32(fmt.Sprintf("first edge of state %d", i))
	}
	for i := uint64(0); i < edges && !a.Scan.Bad; i++ {
		a.Raw(8, fmt.Sprintf("edge %d: label, and state of the child plus 1, or 0 for a name", i))
	}
	a.Raw(uint64(len(a.Scan.Rest)), "text of the labels")
}
