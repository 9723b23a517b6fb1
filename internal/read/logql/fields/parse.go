package fields

import (
	"bytes"
	"context"
	"errors"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/line"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// Line is a line of a sample.
type Line struct {
	Stream model.Labels // of its stream, including those that stages have changed
	Text   []byte
	// Metadata and Parsed are the other labels that the query has given it.
	Metadata, Parsed model.Labels
}

// parser extracts the labels of lines. It is used by one goroutine.
type parser struct {
	json, logfmt *line.Runner
	stream       model.Labels // that the runners know
	out          line.Result
}

func newParser(ctx context.Context) (*parser, error) {
	p := &parser{}
	for _, x := range []struct {
		stage  syntax.Stage
		runner **line.Runner
	}{{&syntax.JSONParser{}, &p.json}, {&syntax.LogfmtParser{}, &p.logfmt}} {
		pipeline, err := line.Compile([]syntax.Stage{x.stage})
		if err != nil {
			return nil, err
		}
		*x.runner = pipeline.Runner()
		(*x.runner).Bind(ctx, nil)
		(*x.runner).SetStream(nil)
	}
	return p, nil
}

// parse returns the labels that are extracted from a line and the parser that does it: json if the line is an
// object, else logfmt, or "" if neither can. The labels are valid until the next call.
func (p *parser) parse(l *Line) (labels model.Labels, name string, err error) {
	if base := baseOf(l); !bytes.Equal(base, p.stream) {
		p.stream = base
		p.json.SetStream(base)
		p.logfmt.SetStream(base)
	}
	for _, x := range []struct {
		name   string
		runner *line.Runner
	}{{"json", p.json}, {"logfmt", p.logfmt}} {
		_, err := x.runner.Process(0, l.Text, nil, &p.out)
		switch {
		case errors.Is(err, model.ErrLimit):
			return nil, "", nil // no query could parse this line, so it has no fields
		case err != nil:
			return nil, "", err
		case p.out.Parsed.Get(errorLabel) == nil:
			return p.out.Parsed, x.name, nil
		}
	}
	return nil, "", nil
}

// The labels of errors, which are not fields.
const (
	errorLabel    = "__error__"
	detailsLabel  = "__error_details__"
	preserveLabel = "__preserve_error__"
)

// isField reports whether a label is a field. The keys of nested JSON may all be empty, and so its name.
func isField(name []byte) bool {
	switch string(name) {
	case errorLabel, detailsLabel, preserveLabel, "":
		return false
	}
	return true
}

// baseOf returns the labels that extracted ones must not collide with: those of the stream that no stage
// made.
func baseOf(l *Line) model.Labels {
	if len(l.Parsed) == 0 {
		return l.Stream
	}
	var b model.LabelsBuilder
	for n, v, rest, ok := l.Stream.Next(); ok; n, v, rest, ok = rest.Next() {
		if l.Parsed.Get(string(n)) == nil {
			b.Add(n, v)
		}
	}
	base, err := b.Append(nil)
	if err != nil {
		return l.Stream
	}
	return base
}
