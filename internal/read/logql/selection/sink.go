package selection

import (
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/line"
)

// Sink says which lines of a scan can still change a result. All workers use it at once.
type Sink interface {
	// Bound returns the farthest time, in the direction of the scan, at which a line can still change the
	// result. It may only come nearer. It is asked for each page, batch and line, and so must be cheap.
	Bound() int64
	// Full reports whether the range beyond what was scanned can be left out. It is asked between slices of
	// the range.
	Full() bool
	// Limit returns how many lines of each chunk are enough if no line is dropped; 0 means all.
	Limit() int
}

// Collector is a sink that takes the lines themselves.
type Collector interface {
	Sink
	// Offer hands over a line that has passed all stages. The line and its bytes are valid during the call.
	// Lines of one stream come in no order. An error ends the scan.
	Offer(l *Line) error
}

// Line is a line that has passed all stages.
type Line struct {
	Time int64
	Position
	Tenant int32 // the number of the request it was selected by
	// Stream, Text and Metadata are the line as it is stored.
	Stream   model.Labels
	Text     []byte
	Metadata model.Labels
	// Result is what the stages made of it.
	Result line.Result
}

// Position orders lines of one time: by stream, by piece of the stream, and by row in the piece, in the order
// of arrival. Positions of different slices are comparable only through the times of their lines, which
// differ.
type Position uint64

// position has 32 bits for the number of the piece in its slice, and as many for the row.
func position(piece, row int32) Position { return Position(piece)<<32 | Position(row) }
