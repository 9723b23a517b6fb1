package logql

import (
	"context"
	"errors"
	"strings"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/line"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// compile makes a program of the stages of a query.
func compile(q *syntax.LogQuery) (*program, error) {
	whole, err := line.Compile(q.Stages, line.Options{})
	if err != nil {
		return nil, stageError(q.Stages, err)
	}
	p := &program{
		stages:       func() lineStages { return whole.Runner() },
		keepsAll:     whole.KeepsAll(),
		textFilter:   whole.TextFilter(nil),
		textFilterIf: whole.TextFilter,
	}
	if whole.Filter() != nil {
		p.filter = func() rowFilter { return whole.Filter() }
	}
	if dropsParsed(q.Stages) {
		probe, err := line.Compile(q.Stages, line.Options{Needed: []string{}})
		if err != nil {
			return nil, stageError(q.Stages, err)
		}
		p.probe = func() lineStages { return probe.Runner() }
	}
	return p, nil
}

// dropsParsed reports whether lines are dropped by what a parser finds in them. Mostly that is few of the fields of a line, so that
// lines are parsed for those alone, and the lines that stay once more.
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

// stageError says which stage an error is of, as Loki does.
func stageError(stages []syntax.Stage, err error) error {
	var known *syntax.ParseError
	if errors.As(err, &known) || errors.Is(err, model.ErrLimit) {
		return err
	}
	for _, s := range stages {
		if _, err := line.Compile([]syntax.Stage{s}, line.Options{}); err != nil {
			return syntax.StageError(s, errors.New(strings.TrimPrefix(err.Error(), model.ErrInvalid.Error()+": ")))
		}
	}
	return err
}

// filterMetadata adds to the filter of a request what lines must have in their structured metadata. A label of that name could be
// one of the stream too, which only the labels of the selected streams tell.
func (x *execution) filterMetadata(ctx context.Context, e *Engine, r model.TimeRange) error {
	if x.program.textFilterIf == nil {
		return nil
	}
	all := x.program.textFilterIf(func(string) bool { return true })
	if all == nil || x.program.textFilter != nil && len(all.Clauses) == len(x.program.textFilter.Clauses) {
		return nil
	}
	x.filtered = true
	for i := range x.requests {
		req := x.requests[i]
		req.Range, req.LabelsOnly, req.TextFilter = r, true, nil
		names, _, err := e.read.LabelNames(ctx, &req, 0)
		if err != nil {
			return err
		}
		taken := make(map[string]bool, len(names))
		for _, n := range names {
			taken[n] = true
		}
		x.requests[i].TextFilter = x.program.textFilterIf(func(name string) bool { return !taken[name] })
	}
	return nil
}
