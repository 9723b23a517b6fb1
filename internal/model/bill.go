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
	placed    []Placed
}

// Placed says where a part of a query runs that reads from another server.
type Placed struct {
	Source string `json:"source"`
	Part   string `json:"part"`
	Where  Place  `json:"where"`
	Reason string `json:"reason"`
}

// Place is where a part of a query runs.
type Place string

// The places: at the other server, there in a form that lets too much pass, and here.
const (
	Pushed  Place = "pushed"
	Partial Place = "partial"
	Local   Place = "local"
)

// maxPlaced bounds the parts that a bill lists.
const maxPlaced = 200

// AddPlaced adds parts of the query, each once.
func (b *Bill) AddPlaced(all ...Placed) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range all {
		if len(b.placed) < maxPlaced && !slices.Contains(b.placed, p) {
			b.placed = append(b.placed, p)
		}
	}
}

// Placed returns the parts that were added.
func (b *Bill) Placed() []Placed {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.placed)
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
	// Least is a lower bound for what will be read, and Most an upper bound. Likely is what is read if the
	// query needs all these pages and reads neighbours with one request; it is between the two.
	Least, Likely, Most Reads
	// EndsEarly says that the query ends as soon as it has enough lines.
	EndsEarly bool
}

// billBlock is what a bill knows of one block.
type billBlock struct {
	gap, span                  int64
	certain, overlap, possible []StoredRange
}

// StoredRange is where a page lies in its object.
type StoredRange struct{ Off, Len int64 }

// BillItem is what one selector reads of one block.
type BillItem struct {
	Block              string
	Pages, PagesCached int64
	Most               Reads
	// Possible are the pages that are not cached, and Certain those of them that will be read in any case.
	// One request reads those that have at most Gap bytes between them, up to Span bytes together.
	Possible, Certain []StoredRange
	// Overlap are further pages that will be read, unless times of any block are blurred: they are read
	// because other rows of their series have the same times.
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
	k.possible = append(k.possible, it.Possible...)
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
		k.possible = sorted(k.possible)
		pages := k.certain
		if !b.blurred {
			pages = slices.Concat(pages, k.overlap)
		}
		f.Least = f.Least.Add(k.reads(pages))
		f.Likely = f.Likely.Add(k.reads(k.possible))
	}
	return f
}

// reads returns the fewest requests that read some of the possible pages of a block, and the bytes of these
// pages. A request reaches over a gap that other possible pages fill.
func (k *billBlock) reads(pages []StoredRange) (r Reads) {
	pages = sorted(pages)
	off, end := int64(-1), int64(-1) // of the request, and of the page before
	for _, p := range k.possible {
		if end >= 0 && p.Off-end > k.gap {
			off = -1
		}
		end = p.Off + p.Len
		if len(pages) == 0 || pages[0] != p {
			continue
		}
		pages = pages[1:]
		if off < 0 || end-off > k.span {
			off = p.Off
			r.Requests++
		}
		r.Bytes += p.Len
	}
	return r
}

// sorted returns the pages in order, each once: two selectors may want the same.
func sorted(pages []StoredRange) []StoredRange {
	slices.SortFunc(pages, func(a, b StoredRange) int { return cmp.Compare(a.Off, b.Off) })
	return slices.Compact(pages)
}
