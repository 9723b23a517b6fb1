package selection

import (
	"cmp"
	"slices"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
)

// piece is what is scanned at a time: a stretch of one stream, in which the rows of all its chunks are
// merged. Pieces of one stream share no row, whatever their chunks do.
type piece struct {
	stream int32 // its number in the portion
	number int32 // by stream, then by time
	// Its chunks are layout.chunks[from:to], by order of arrival.
	from, to int32
	// TimeRange bounds the rows that count.
	model.TimeRange
}

// single reports whether the piece has just one chunk.
func (p *piece) single() bool { return p.to-p.from == 1 }

// task is a list of pieces that lie in the same pages, so that a page with many small streams is decoded
// once. It is one worker's work.
type task struct {
	pieces []int32
	model.TimeRange
	bytes int64 // of the lines of all its chunks
	// page is the only page of its pieces, or -1 if they have several; chunks is how many they have.
	page   int32
	chunks int32
}

// defaultMergeBytes is how many bytes of lines a piece of overlapping chunks may have before it is cut in
// time. A late chunk may overlap all others of its stream, which must not be in memory together for that.
const defaultMergeBytes = 1 << 20

// layout is the work of one selection.
type layout struct {
	mergeBytes int64

	chunks []model.TextChunk
	pageOf []int32 // of each chunk, its place in pages
	pages  []heldPage
	pieces []piece
	tasks  []task

	pageAt map[model.TextPage]int32
	taskAt map[taskKey]int32
	carry  []model.TextChunk
}

// taskKey gathers pieces in one task: those of one page, and of several what mostly are the same ones.
type taskKey struct {
	first, last int32
	pages       int32
}

func newLayout(mergeBytes int64) *layout {
	return &layout{mergeBytes: mergeBytes, pageAt: make(map[model.TextPage]int32), taskAt: make(map[taskKey]int32)}
}

// addStream cuts the chunks of a stream into pieces, of rows within clip. It reorders chunks.
//
// Two chunks of one cursor may share the time at which they meet. Their rows there are different ones, so
// that they need not be merged; else every stream whose times are coarse would be one long piece.
func (l *layout) addStream(stream int32, chunks []model.TextChunk, clip model.TimeRange) {
	chunks = clipped(chunks, clip)
	for i := 0; i < len(chunks); {
		n := Overlapping(chunks[i:])
		if n == 1 {
			l.addPiece(piece{stream: stream, TimeRange: within(chunks[i].TimeRange, clip)}, chunks[i:i+1])
		} else {
			l.addMerged(stream, chunks[i:i+n], clip)
		}
		i += n
	}
}

// clipped returns the chunks that reach into clip, by their least times. Those of one cursor that begin at
// one time stay in the order in which they came, which is that of arrival.
func clipped(chunks []model.TextChunk, clip model.TimeRange) []model.TextChunk {
	chunks = slices.DeleteFunc(chunks, func(c model.TextChunk) bool { return c.Rows == 0 || !c.Overlaps(clip) })
	slices.SortStableFunc(chunks, func(a, b model.TextChunk) int { return cmp.Compare(a.Min, b.Min) })
	return chunks
}

// Overlapping returns how many of the first chunks, which are sorted by their beginning, must be merged with
// the first.
func Overlapping(chunks []model.TextChunk) int {
	reach := chunks[0].Max
	for n := 1; n < len(chunks); n++ {
		if chunks[n].Min > reach || chunks[n].Min == reach && oneCursorMeets(chunks, n) {
			return n
		}
		reach = max(reach, chunks[n].Max)
	}
	return len(chunks)
}

// oneCursorMeets reports whether all chunks that have a row at the time at which chunk n begins are of its
// cursor.
func oneCursorMeets(chunks []model.TextChunk, n int) bool {
	at, order := chunks[n].Min, chunks[n].Order
	for i := n - 1; i >= 0; i-- {
		if chunks[i].Max >= at && chunks[i].Order != order {
			return false
		}
	}
	for i := n + 1; i < len(chunks) && chunks[i].Min == at; i++ {
		if chunks[i].Order != order {
			return false
		}
	}
	return true
}

// addMerged makes pieces of chunks that overlap.
func (l *layout) addMerged(stream int32, chunks []model.TextChunk, clip model.TimeRange) {
	p := piece{stream: stream, TimeRange: within(chunks[0].TimeRange, clip)}
	l.carry = l.carry[:0]
	fresh, begun, enough := int64(0), 0, l.mergeBytes
	for _, c := range chunks {
		if fresh >= enough && c.Min > p.Min {
			// Chunks that reach into the next piece are read again there: there must not be too many of them.
			if reaching(l.carry, c.Min) > 4*begun {
				enough = 2 * fresh
			} else {
				whole := p.Max
				p.Max = c.Min - 1
				l.addPiece(p, l.carry)
				l.carry = slices.DeleteFunc(l.carry, func(o model.TextChunk) bool { return o.Max < c.Min })
				p = piece{stream: stream, TimeRange: model.TimeRange{Min: c.Min, Max: whole}}
				fresh, begun, enough = 0, 0, l.mergeBytes
			}
		}
		l.carry = append(l.carry, c)
		p.Max = max(p.Max, min(c.Max, clip.Max))
		fresh += c.Bytes
		begun++
	}
	l.addPiece(p, l.carry)
}

// reaching counts the chunks that have rows at a time or later.
func reaching(chunks []model.TextChunk, at int64) int {
	n := 0
	for i := range chunks {
		if chunks[i].Max >= at {
			n++
		}
	}
	return n
}

func (l *layout) addPiece(p piece, chunks []model.TextChunk) {
	p.number, p.from = int32(len(l.pieces)), int32(len(l.chunks))
	l.chunks = append(l.chunks, chunks...)
	p.to = int32(len(l.chunks))
	own := l.chunks[p.from:p.to]
	slices.SortStableFunc(own, func(a, b model.TextChunk) int {
		return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.Min, b.Min))
	})
	key := taskKey{first: -1}
	bytes := int64(0)
	for i := range own {
		at := l.page(&own[i])
		l.pageOf = append(l.pageOf, at)
		if key.first < 0 {
			key.first = at
		}
		if at != key.last || i == 0 {
			key.pages++
		}
		key.last = at
		bytes += own[i].Bytes
	}
	at, known := l.taskAt[key]
	if !known {
		at = int32(len(l.tasks))
		l.taskAt[key] = at
		l.tasks = append(l.tasks, task{TimeRange: p.TimeRange, page: key.first})
	}
	u := &l.tasks[at]
	if key.pages > 1 {
		u.page = -1
	}
	u.chunks += p.to - p.from
	u.Min, u.Max = min(u.Min, p.Min), max(u.Max, p.Max)
	u.bytes += bytes
	u.pieces = append(u.pieces, p.number)
	l.pieces = append(l.pieces, p)
}

// page returns the place of a chunk's page, and counts the piece that needs it.
func (l *layout) page(c *model.TextChunk) int32 {
	// A page without deleted rows shares the memory of the whole one, which another worker may be reading.
	inside := read.PageInside(c.Page)
	at, known := l.pageAt[inside]
	if !known {
		at = int32(len(l.pages))
		l.pageAt[inside] = at
		l.pages = append(l.pages, heldPage{page: c.Page})
	}
	l.pages[at].wanted++
	l.pages[at].bytes += c.Bytes + rowBytes*int64(c.Rows)
	return at
}

// order sorts tasks, and the pieces of each, by which of them a query of that direction wants first. Without
// it, tasks are in the order of streams, and so mostly of the pages in a part.
func (l *layout) order(d Direction) {
	// Places are sorted in the tasks' stead, which are large and have pointers.
	type place struct {
		model.TimeRange
		piece, at int32
	}
	places := make([]place, len(l.tasks))
	for i := range l.tasks {
		places[i] = place{l.tasks[i].TimeRange, l.tasks[i].pieces[0], int32(i)}
	}
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(d.CompareRanges(a.TimeRange, b.TimeRange), cmp.Compare(a.piece, b.piece))
	})
	tasks := make([]task, len(places))
	for i := range places {
		tasks[i] = l.tasks[places[i].at]
	}
	l.tasks = tasks
	for i := range l.tasks {
		slices.SortFunc(l.tasks[i].pieces, func(a, b int32) int {
			return cmp.Or(d.CompareRanges(l.pieces[a].TimeRange, l.pieces[b].TimeRange), cmp.Compare(a, b))
		})
	}
}

// forgetKeys frees what only adding streams needs.
func (l *layout) forgetKeys() {
	clear(l.taskAt)
	clear(l.pageAt)
}

// within returns what two ranges share.
func within(a, b model.TimeRange) model.TimeRange {
	return model.TimeRange{Min: max(a.Min, b.Min), Max: min(a.Max, b.Max)}
}
