package model

import "context"

// TextRows are rows of text of one series as columns: ascending times, at equal times in the order of arrival. Lines lie one
// behind the other, so that a filter can look at all of them at once.
type TextRows struct {
	Times []int64
	// Bytes[Begin:Ends[0]] is the first line, Bytes[Ends[i-1]:Ends[i]] each further one. Bytes and Begin are not set, and Ends
	// is empty, where only times are asked for.
	Bytes []byte
	Begin uint32
	Ends  []uint32
	// Metadata has each distinct set of structured metadata once, none of them empty; MetadataOf says which one a row has, as
	// its place there plus 1, and 0 for none. It is empty if no row has metadata.
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

// TextFilter is what lines must have that a query can be interested in: each of its clauses must hold. It serves to leave
// pages out, so a source may ignore it; it never says that a line is wanted.
type TextFilter struct {
	Clauses []TextClause
}

// TextClause holds for a line that satisfies at least one of its alternatives.
type TextClause struct {
	Any []TextLiteral
}

// TextLiteral holds for lines that contain Value as a substring; or, if Name is set, for those whose structured metadata has
// that name with exactly this value.
type TextLiteral struct {
	Name  string
	Value string
	// Fold says that the case of letters does not matter, as in Unicode's simple folding.
	Fold bool
}

// TextWant says which columns of text are asked for. Times always are.
type TextWant uint8

// What can be asked for.
const (
	WantMetadata TextWant = 1 << iota
	WantLines
	// WantNewest says of the lines that the newest of each chunk may be enough. Pages are told so ahead of time.
	WantNewest
)

// TextChunk is a stretch of the rows of one series in one page: what is read at a time.
type TextChunk struct {
	TimeRange
	// Rows counts its rows and Bytes those of their lines; of a chunk that reaches beyond the request's range, all of them.
	Rows  int
	Bytes int64
	// Order says what came first: of two equal rows at one time, and between rows of one time, those of the lower.
	Order uint64
	// Page holds the chunk, as its Index-th one.
	Page  TextPage
	Index int
}

// TextPage holds chunks of one series or, where series have few lines, of several. Pages are compared by identity: two chunks
// lie in one page if their Page is equal. It is safe for concurrent use, and valid until its cursor is closed.
type TextPage interface {
	// Skip reports whether no line of the page satisfies the filter of the request that it was selected for. It reads much
	// less than the lines, and nothing without a filter.
	Skip(ctx context.Context) (bool, error)
	// ReadText fills dst with the rows of a chunk, those beyond the request's range included. What it gives may alias the page and is valid until dst is
	// reset and as long as the caller holds it: it is never overwritten. Memory is charged to the request's quota by the
	// page until Release.
	ReadText(ctx context.Context, index int, want TextWant, dst *TextRows) error
	// Release gives up what the page holds in memory; it is read again when it is asked for again.
	Release()
}

// TextCursor walks the series of one source that satisfy a request, in the order of their keys. It is used by one goroutine.
type TextCursor interface {
	// Next moves to the next series. It returns false at the end or on an error.
	Next(ctx context.Context) bool
	// Key and Labels describe the series. The labels are valid until Next.
	Key() Key
	Labels() Labels
	// Chunks appends those chunks of the series that may have rows in the request's range, those of one order by time. Such
	// overlap no other one of their order, but that one may begin at the time at which the one before ends; and no row of theirs
	// is there twice.
	Chunks(ctx context.Context, dst []TextChunk) ([]TextChunk, error)
	Err() error
	// Close gives up what the cursor pins: its chunks are invalid from there on. It must be called.
	Close() error
}
