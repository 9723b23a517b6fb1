package logql

import (
	"context"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/line"
)

// rowFilter finds rows by their lines alone: what the leading line filters of a query say, over a stretch of a page at once. It
// is used by one goroutine.
type rowFilter interface {
	// Select appends those of rows [from, to) whose lines pass, ascending.
	Select(dst []int32, rows *model.TextRows, from, to int) []int32
	// Bind says what ends the work. What Select returns after the end means nothing.
	Bind(ctx context.Context)
}

// lineStages are what a query does with each line that has passed the leading filters. They are used by one goroutine.
type lineStages interface {
	// SetStream says that further lines are of a stream with these labels, which stay valid until it is called again.
	SetStream(labels model.Labels)
	// Process fills out, whose contents are valid until the next call, and reports whether the line stays.
	Process(at int64, text []byte, metadata model.Labels, out *line.Result) (bool, error)
	// Bind says what ends the work on a line, and who is charged with the memory that lines take beyond what they are.
	Bind(ctx context.Context, charge func(bytes int64) error)
}

// program is what a query does with lines, for any number of goroutines, each of which makes its own filter and stages.
type program struct {
	filter func() rowFilter // nil: there is none
	stages func() lineStages
	// probe makes stages that drop the same lines and have less to do, as they do not make the whole result; nil: there are
	// none that could be worth it.
	probe func() lineStages
	// keepsAll says that no line is dropped, so that times alone decide which ones are the first.
	keepsAll   bool
	textFilter *model.TextFilter
	// textFilterIf gives more to filter by, if it is known which labels no stream has.
	textFilterIf func(absent func(name string) bool) *model.TextFilter
}

func sizeOf(l *line.Result) int { return len(l.Line) + len(l.Stream) + len(l.Metadata) + len(l.Parsed) }
