package selection

import (
	"context"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/line"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// RowFilter finds rows by their lines alone: what the leading line filters of a query say, over a stretch of
// a page at once. It is used by one goroutine.
type RowFilter interface {
	// Select appends those of rows [from, to) whose lines pass, ascending.
	Select(dst []int32, rows *model.TextRows, from, to int) []int32
	// Bind says what ends the work. What Select returns after the end means nothing.
	Bind(ctx context.Context)
}

// LineStages are what a query does with each line that has passed the leading filters. They are used by one
// goroutine.
type LineStages interface {
	// SetStream says that further lines are of a stream with these labels, which stay valid until it is called
	// again.
	SetStream(labels model.Labels)
	// Process fills out, whose contents are valid until the next call, and reports whether the line stays.
	Process(at int64, text []byte, metadata model.Labels, out *line.Result) (bool, error)
	// Bind sets the context, which ends the work on a line, and the function that charges the memory that
	// stages take beyond the lines themselves.
	Bind(ctx context.Context, charge func(bytes int64) error)
}

// Program is what a query does with lines, for any number of goroutines, each of which makes its own filter
// and stages.
type Program struct {
	Filter func() RowFilter // nil: there is none
	Stages func() LineStages
	// Probe makes stages that drop the same lines and have less to do, as they do not make the whole result;
	// nil: there are none that could be worth it.
	Probe func() LineStages
	// KeepsAll says that no line is dropped, so that times alone decide which ones are the first.
	KeepsAll bool
	// Whole says that a Counter needs no stage: lines that pass the filter count as they are.
	Whole      bool
	TextFilter *model.TextFilter
	// TextFilterIf gives more to filter by, if it is known which labels no stream has.
	TextFilterIf func(absent func(name string) bool) *model.TextFilter
}

// Compile makes a program of the stages of a query.
func Compile(stages []syntax.Stage) (*Program, error) {
	whole, err := line.Compile(stages)
	if err != nil {
		return nil, err
	}
	p := program(whole)
	p.Stages = func() LineStages { return whole.Runner() }
	p.KeepsAll = whole.KeepsAll()
	if dropsParsed(stages) {
		probe := whole.Needing()
		p.Probe = func() LineStages { return probe.Runner() }
	}
	return p, nil
}

// CompileCounter makes a program for a [Counter], which runs the pipeline itself.
func CompileCounter(pipeline *line.Pipeline) *Program {
	p := program(pipeline)
	p.Whole = pipeline.CountsWhole()
	return p
}

func program(pipeline *line.Pipeline) *Program {
	p := &Program{TextFilter: pipeline.TextFilter(nil), TextFilterIf: pipeline.TextFilter}
	if pipeline.Filter() != nil {
		p.Filter = func() RowFilter { return pipeline.Filter() }
	}
	return p
}

// dropsParsed reports whether lines are dropped by what a parser finds in them. Mostly that is few of a
// line's fields. So a line is parsed for those alone first, and again in full if it stays.
func dropsParsed(stages []syntax.Stage) bool {
	parsed := false
	for _, s := range stages {
		switch s.(type) {
		case *syntax.JSONParser, *syntax.LogfmtParser, *syntax.RegexpParser, *syntax.PatternParser, *syntax.UnpackParser:
			parsed = true
		case *syntax.LabelFilter, *syntax.LineFilter:
			if parsed {
				return true
			}
		}
	}
	return false
}
