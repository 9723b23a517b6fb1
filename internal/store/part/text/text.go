package text

import (
	"context"
	"sort"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/file"
)

// Series is the text of one series in one input, by time; at equal times in the order of arrival.
type Series interface {
	// Extent bounds the times of its rows and returns an upper bound of their number. 0 means that it has no
	// rows.
	Extent() (model.TimeRange, uint64)
	// Run walks the rows within clip. It may be called several times; each walk ends the ones before it.
	Run(ctx context.Context, clip model.TimeRange) Run
}

// Run walks the rows of a [Series], a piece at a time.
type Run interface {
	// Next moves to the next piece. It returns false at the end or on an error.
	Next() bool
	// Piece returns the current piece. It is valid until Next.
	Piece() *Piece
	Err() error
}

// Piece is consecutive rows of one series: decoded rows, or a unit of this series alone, which can be copied
// as it is stored.
type Piece struct {
	// Times bounds the rows, exactly if the piece is stored.
	Times model.TimeRange
	// rows are decoded and within the clip.
	rows model.TextRows
	// distinct says that no two rows of the input are equal.
	distinct bool
	// stored is the unit if it has one series and lies within the clip; Rows decodes it.
	stored *storedText
}

// Rows returns the rows of the piece within the clip of its walk. They are valid until the walk moves on.
func (p *Piece) Rows(ctx context.Context) (*model.TextRows, error) {
	if p.stored != nil && !p.stored.decoded {
		if err := p.stored.decode(ctx, &p.rows); err != nil {
			return nil, err
		}
		p.stored.decoded = true
	}
	return &p.rows, nil
}

// OfRows gives rows in memory, which must not change as long as the result is used.
func OfRows(r *model.TextRows) Series { return (*memoryText)(r) }

type memoryText model.TextRows

func (m *memoryText) Extent() (model.TimeRange, uint64) {
	n := len(m.Times)
	if n == 0 {
		return file.NoTimes, 0
	}
	return model.TimeRange{Min: m.Times[0], Max: m.Times[n-1]}, uint64(n)
}

func (m *memoryText) Run(_ context.Context, clip model.TimeRange) Run {
	run := &memoryRun{}
	clipRows(&run.piece.rows, (*model.TextRows)(m), clip)
	if times := run.piece.rows.Times; len(times) > 0 {
		run.piece.Times = model.TimeRange{Min: times[0], Max: times[len(times)-1]}
	}
	return run
}

type memoryRun struct {
	piece Piece
	begun bool
}

func (r *memoryRun) Next() bool {
	begun := r.begun
	r.begun = true
	return !begun && len(r.piece.rows.Times) > 0
}

func (r *memoryRun) Piece() *Piece { return &r.piece }

func (r *memoryRun) Err() error { return nil }

// clipRows makes dst a view of the rows of src within clip.
func clipRows(dst, src *model.TextRows, clip model.TimeRange) {
	i := sort.Search(len(src.Times), func(i int) bool { return src.Times[i] >= clip.Min })
	j := sort.Search(len(src.Times), func(i int) bool { return src.Times[i] > clip.Max })
	ViewRows(dst, src, i, max(i, j))
}

// ViewRows makes dst a view of the rows [i, j) of src.
func ViewRows(dst, src *model.TextRows, i, j int) {
	*dst = model.TextRows{Times: src.Times[i:j:j], Bytes: src.Bytes, Begin: src.Begin, Ends: src.Ends[i:j:j], Metadata: src.Metadata}
	if i > 0 {
		dst.Begin = src.Ends[i-1]
	}
	if len(src.MetadataOf) > 0 {
		dst.MetadataOf = src.MetadataOf[i:j:j]
	}
}

// HasRows reports whether any input has a row within clip. It mostly follows from their extents: of a text
// whose extent is exact, as it is if it is not a [BoundedText], no row is read.
func HasRows(ctx context.Context, texts []Series, clip model.TimeRange) (bool, error) {
	for _, t := range texts {
		_, bounded := t.(Bounded)
		if times, n := t.Extent(); !bounded && n > 0 && clip.Contains(times.Min) && clip.Contains(times.Max) {
			return true, nil
		}
	}
	for _, t := range texts {
		if times, n := t.Extent(); n == 0 || !times.Overlaps(clip) {
			continue
		}
		run := t.Run(ctx, clip)
		if run.Next() {
			return true, nil
		}
		if err := run.Err(); err != nil {
			return false, err
		}
	}
	return false, nil
}

// Bounded is a [Series] that may have fewer rows than its extent counts, such as one that leaves out rows.
type Bounded interface {
	Series
	// Bounded does nothing.
	Bounded()
}
