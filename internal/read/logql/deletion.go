package logql

import (
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/line"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// LineTest is a query for lines that says which lines are meant, such as those that are to be deleted. It
// never changes.
type LineTest struct {
	query    *syntax.LogQuery
	pipeline *line.Pipeline
}

// ParseLineTest parses a query for lines. Stages that write lines or labels by a template are refused: the
// work for one line would have no bound that suits every later query. Errors are of class invalid or limit.
func ParseLineTest(text string) (*LineTest, error) {
	q, err := syntax.ParseLog(text)
	if err != nil {
		return nil, err
	}
	for _, s := range q.Stages {
		switch s.(type) {
		case *syntax.LineFormat, *syntax.LabelFormat:
			return nil, &refused{"line_format and label_format cannot say which lines are meant", model.ErrInvalid}
		}
	}
	p, err := line.Compile(q.Stages)
	if err != nil {
		return nil, err
	}
	return &LineTest{query: q, pipeline: p.Needing()}, nil
}

// Matchers returns the matchers of the selector.
func (t *LineTest) Matchers() []model.Matcher {
	ms := make([]model.Matcher, 0, len(t.query.Matchers))
	for _, m := range t.query.Matchers {
		ms = append(ms, m.Matcher)
	}
	return ms
}

// All reports whether the query means every line of its streams.
func (t *LineTest) All() bool { return len(t.query.Stages) == 0 }

// ForStream returns the test for the lines of a stream, for one goroutine. The labels must stay as they are.
// A line that exceeds a limit of the stages does not pass.
func (t *LineTest) ForStream(stream model.Labels) func(at int64, text []byte, metadata model.Labels) bool {
	filter, runner := t.pipeline.Filter(), t.pipeline.Runner()
	runner.SetStream(stream)
	var row model.TextRows
	var passed []int32
	var out line.Result
	return func(at int64, text []byte, metadata model.Labels) bool {
		if filter != nil {
			row.Times, row.Bytes, row.Ends = append(row.Times[:0], at), text, append(row.Ends[:0], uint32(len(text)))
			if passed = filter.Select(passed[:0], &row, 0, 1); len(passed) == 0 {
				return false
			}
		}
		ok, err := runner.Process(at, text, metadata, &out)
		return ok && err == nil
	}
}
