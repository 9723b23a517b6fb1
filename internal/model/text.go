package model

import "context"

// TextRows are the text rows of one series as columns, sorted by time and then by arrival. Lines are
// contiguous, so that a filter can scan all of them at once.
type TextRows struct {
	Times []int64
	// Bytes[Begin:Ends[0]] is the first line, and Bytes[Ends[i-1]:Ends[i]] line i. If only times are wanted,
	// Bytes and Begin are not set, and Ends is empty. If lengths of lines are wanted without lines, only Bytes
	// is not set.
	Bytes []byte
	Begin uint32
	Ends  []uint32
	// Metadata has each distinct non-empty set of structured metadata once. MetadataOf gives for each row its
	// index there plus 1, and 0 for no metadata. It is empty if no row has metadata.
	Metadata   []Labels
	MetadataOf []uint32
}

// Len returns the number of rows.
func (r *TextRows) Len() int { return len(r.Times) }

// Line returns line i. It aliases Bytes.
func (r *TextRows) Line(i int) []byte {
	begin := r.Begin
	if i > 0 {
		begin = r.Ends[i-1]
	}
	return r.Bytes[begin:r.Ends[i]:r.Ends[i]]
}

// MetadataAt returns the structured metadata of row i, empty if it has none.
func (r *TextRows) MetadataAt(i int) Labels {
	if len(r.MetadataOf) == 0 || r.MetadataOf[i] == 0 {
		return nil
	}
	return r.Metadata[r.MetadataOf[i]-1]
}

// Reset empties the columns and keeps their memory, but not that of Bytes, which may belong to a page.
func (r *TextRows) Reset() {
	r.Times, r.Ends, r.MetadataOf = r.Times[:0], r.Ends[:0], r.MetadataOf[:0]
	r.Bytes, r.Begin = nil, 0
	clear(r.Metadata)
	r.Metadata = r.Metadata[:0]
}

// TextFilter is a necessary condition for the lines of a query: each of its clauses must hold. It serves to
// skip pages, so a source may ignore it. It is not sufficient: a line that satisfies it may be unwanted.
type TextFilter struct {
	Clauses []TextClause
}

// TextClause holds for a line that satisfies at least one of its alternatives.
type TextClause struct {
	Any []TextLiteral
}

// TextLiteral holds for lines that contain Value as a substring. If Name is set, it holds for lines whose
// structured metadata has that name with exactly this value.
type TextLiteral struct {
	Name  string
	Value string
	// Fold ignores the case of letters, by Unicode's simple folding.
	Fold bool
}

// TextWant says which columns of text are wanted. Times always are.
type TextWant uint8

// The columns.
const (
	WantMetadata TextWant = 1 << iota
	WantLines
	// WantNewest says that the newest lines of each chunk may be enough. It is announced with prefetching.
	WantNewest
	// WantLengths wants the lengths of lines: Begin and Ends, without Bytes. It reads no line.
	WantLengths
	// WantNoMore says that probably no other column of the page will be wanted. A page then does not decode
	// others along, which costs as much again.
	WantNoMore
)

// TextChunk is a stretch of the rows of one series in one page. It is the unit of a read.
type TextChunk struct {
	TimeRange
	// Rows is the number of its rows, and Bytes the size of their lines, including those beyond the range of
	// the request.
	Rows  int
	Bytes int64
	// StandsFor is how many lines each row stands for, if the chunk is a sample that was asked for; 0: it is
	// not, and has all lines.
	StandsFor float64
	// Order tells which rows of the same time arrived first: those of the lower order. That includes equal
	// rows.
	Order uint64
	// Page holds the chunk, and Index is the index of the chunk in it.
	Page  TextPage
	Index int
}

// TextPage holds chunks of one series or, if series have few lines, of several. Pages are compared by
// identity: two chunks are in the same page if their Pages are equal. It is safe for concurrent use, and
// valid until its cursor is closed.
type TextPage interface {
	// Skip reports whether no line of the page satisfies the filter of the request that it was selected for.
	// It reads much less than the lines, and nothing without a filter.
	Skip(ctx context.Context) (bool, error)
	// ReadText fills dst with the rows of a chunk, including those beyond the range of the request. They may
	// alias the page, which never overwrites them, so they stay valid while the caller holds them. The page
	// charges its memory to the quota of the request until Release.
	ReadText(ctx context.Context, index int, want TextWant, dst *TextRows) error
	// Release frees the memory of the page. A later read loads the page from storage.
	Release()
}

// TextCursor walks the series of one source that satisfy a request, in the order of their keys. It is used by
// one goroutine.
type TextCursor interface {
	// Next moves to the next series. It returns false at the end or on an error.
	Next(ctx context.Context) bool
	// Key and Labels describe the series. The labels are valid until Next.
	Key() Key
	Labels() Labels
	// Chunks appends the chunks of the series that may have rows in the range of the request. Chunks of the
	// same order are sorted by time and do not overlap, but one may begin at the time at which the previous
	// one ends. Together they have no row twice.
	Chunks(ctx context.Context, dst []TextChunk) ([]TextChunk, error)
	Err() error
	// Close releases the data that the cursor pins, and makes its chunks invalid. It must be called.
	Close() error
}
