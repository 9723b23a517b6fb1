package model

import (
	"cmp"
	"slices"
	"sync"
)

// Bill gathers what a query would read of the bucket. A query whose [Cost] has a bill is not run: its sources
// add the pages that it would read, and read only the footers, indexes and postings that tell them. It may be
// used by several goroutines.
type Bill struct {
	// Coarse asks the sources for the sizes of blocks, which they know without reading anything.
	Coarse bool

	mu        sync.Mutex
	endsEarly bool
	blurred   bool
	coarse    Reads
	most      Reads
	figures   BillFigures
	blocks    map[string]*billBlock
}

// Reads are requests to the bucket and the bytes that they carry.
type Reads struct{ Requests, Bytes int64 }

// Add returns the sum of both.
func (r Reads) Add(o Reads) Reads { return Reads{r.Requests + o.Requests, r.Bytes + o.Bytes} }

// BillFigures are the sums of a bill. They hold for a query that runs after its bill was made, in the same
// process, while the cache keeps the pages of the query and no request fails.
type BillFigures struct {
	// Blocks is the number of blocks that will be opened; it is exact.
	Blocks int64
	// Pages is an upper bound for the pages that will be read, and PagesCached the number of them that are in
	// the cache. A page that two selectors of a query want counts twice.
	Pages, PagesCached int64
	// Least is a lower bound for what will be read, and Most an upper bound.
	Least, Most Reads
	// EndsEarly says that the query ends as soon as it has enough lines.
	EndsEarly bool
}

// billBlock is what a bill knows of one block.
type billBlock struct {
	gap, span        int64
	certain, overlap []StoredRange
}

// StoredRange is where a page lies in its object.
type StoredRange struct{ Off, Len int64 }

// BillItem is what one selector reads of one block.
type BillItem struct {
	Block              string
	Pages, PagesCached int64
	Most               Reads
	// Certain are the pages that are not cached and will be read in any case. One request reads those that
	// have at most Gap bytes between them, up to Span bytes together.
	Certain []StoredRange
	// Overlap are further pages of this kind, unless times of any block are blurred: they are read because
	// other rows of their series have the same times.
	Overlap   []StoredRange
	Gap, Span int64
}

// Add adds what one selector reads of one block.
func (b *Bill) Add(it *BillItem) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := b.block(it.Block)
	k.gap, k.span = max(k.gap, it.Gap), max(k.span, it.Span)
	k.certain, k.overlap = append(k.certain, it.Certain...), append(k.overlap, it.Overlap...)
	b.figures.Pages += it.Pages
	b.figures.PagesCached += it.PagesCached
	b.most = b.most.Add(it.Most)
}

// AddCoarse adds a block of which only the size is known.
func (b *Bill) AddCoarse(block string, bytes int64) {
	// The size of a page of a block, about. An exact figure needs the indexes.
	const pageBytes = 16 << 10
	b.mu.Lock()
	defer b.mu.Unlock()
	b.block(block)
	b.coarse = b.coarse.Add(Reads{Requests: 4 + bytes/pageBytes, Bytes: bytes})
}

func (b *Bill) block(id string) *billBlock {
	if b.blocks == nil {
		b.blocks = make(map[string]*billBlock)
	}
	k := b.blocks[id]
	if k == nil {
		k = new(billBlock)
		b.blocks[id] = k
	}
	return k
}

// EndEarly says that the query ends as soon as it has enough lines, so no page of lines is certain.
func (b *Bill) EndEarly() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.endsEarly = true
}

// EndsEarly reports whether EndEarly was called.
func (b *Bill) EndsEarly() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.endsEarly
}

// Blur says that the times of rows of some series are known roughly, because their page is not read.
func (b *Bill) Blur() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.blurred = true
}

// Figures returns the sums.
func (b *Bill) Figures() BillFigures {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.figures
	f.Blocks, f.EndsEarly, f.Most = int64(len(b.blocks)), b.endsEarly, b.most
	if b.Coarse {
		f.Most = b.coarse
		return f
	}
	for _, k := range b.blocks {
		f.Least = f.Least.Add(k.least(b.blurred))
	}
	return f
}

// least returns the fewest requests that read the certain pages of a block, and the bytes of those pages.
func (k *billBlock) least(blurred bool) (r Reads) {
	pages := slices.Clone(k.certain)
	if !blurred {
		pages = append(pages, k.overlap...)
	}
	slices.SortFunc(pages, func(a, b StoredRange) int { return cmp.Compare(a.Off, b.Off) })
	off, end := int64(0), int64(-1)
	for _, p := range slices.Compact(pages) { // two selectors may want the same page
		if end < 0 || p.Off-end > k.gap || p.Off+p.Len-off > k.span {
			off = p.Off
			r.Requests++
		}
		end = p.Off + p.Len
		r.Bytes += p.Len
	}
	return r
}
