package line

import (
	"errors"
	"strings"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/counts"
	"github.com/shaledb/shale/internal/read/logql/line/match"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// Pipeline is what a query does with lines, compiled. It never changes.
type Pipeline struct {
	filters []*match.LineFilter // the leading ones
	stages  []newStage          // all that follow
	source  []syntax.Stage
	// early are conditions on single labels that nothing changes between the parsers and the label filter.
	early  []earlyCondition
	needed map[string]struct{} // nil: all
	// neededLengths has bit n if a label with a name of n bytes is needed, before or after it was extended.
	neededLengths uint64

	sampler *sampler // nil: lines are wanted, not numbers
	// hints are all labels that a sample needs, or nil. parsesNothing says that it needs none, and preserve
	// that the query looks for lines with errors.
	hints                   []string
	parsesNothing, preserve bool

	lines    []model.TextClause
	metadata []model.TextClause
}

type earlyCondition struct {
	label     string
	condition condition
	stage     int // the index of the label filter, which parsers after it do not affect
}

// Compile compiles the stages of a query. What it refuses is of class model.ErrInvalid or, for regular
// expressions that are too large, model.ErrLimit.
func Compile(stages []syntax.Stage) (*Pipeline, error) {
	counts.Plan()
	p := &Pipeline{source: stages}
	first, rest := lead(stages)
	for _, s := range first {
		f, err := match.NewLineFilter(s)
		if err != nil {
			return nil, stageError(s, err)
		}
		if f.Test == (match.Always{}) && !f.Negate {
			continue
		}
		p.filters = append(p.filters, f)
		if !f.Negate {
			for _, c := range f.Needed {
				p.lines = append(p.lines, c.Model())
			}
		}
	}
	parsed := make(map[syntax.Stage][]string)
	for _, s := range rest {
		c, err := compileStage(s)
		if err != nil {
			return nil, stageError(s, err)
		}
		p.stages = append(p.stages, c.newStage)
		parsed[s] = c.labels
	}
	var err error
	if p.early, err = earlyConditions(rest); err != nil {
		return nil, err
	}
	p.metadata = metadataClauses(stages, parsed)
	return p, nil
}

// Needing returns a pipeline that keeps the same lines and sets only those parsed labels that are named or
// that the stages themselves look at. Parsers leave out the others, except labels of errors.
func (p *Pipeline) Needing(labels ...string) *Pipeline {
	n := *p
	n.setNeeded(neededLabels(p.source, labels))
	return &n
}

func (p *Pipeline) setNeeded(names map[string]struct{}) {
	p.needed, p.neededLengths = names, 0
	for name := range names {
		own := strings.TrimSuffix(name, extractedSuffix)
		p.neededLengths |= 1<<min(len(name), 63) | 1<<min(len(own), 63)
	}
}

// stageError gives the error of a stage its text and, unless it is a limit, its class.
func stageError(s syntax.Stage, err error) error {
	if errors.Is(err, model.ErrLimit) {
		return err
	}
	return syntax.StageError(s, err)
}

// lead splits off the line filters before the first stage that changes lines. What stands between them
// neither changes a line nor can bring back one that a filter drops.
func lead(stages []syntax.Stage) (first []*syntax.LineFilter, rest []syntax.Stage) {
	for i, s := range stages {
		switch s := s.(type) {
		case *syntax.LineFormat, *syntax.UnpackParser, *syntax.Decolorize:
			return first, append(rest, stages[i:]...)
		case *syntax.LineFilter:
			first = append(first, s)
		default:
			rest = append(rest, s)
		}
	}
	return first, rest
}

// compiledStage is a stage of a pipeline.
type compiledStage struct {
	newStage
	labels []string // that a parser with fixed labels sets
}

func compileStage(s syntax.Stage) (compiledStage, error) {
	switch s := s.(type) {
	case *syntax.RegexpParser:
		p, err := newRegexpParser(s.Pattern)
		if err != nil {
			return compiledStage{}, err
		}
		return compiledStage{sharedStage(p), p.names}, nil
	case *syntax.PatternParser:
		p, err := newPatternParser(s.Pattern)
		if err != nil {
			return compiledStage{}, err
		}
		return compiledStage{sharedStage(p), p.labels()}, nil
	case *syntax.LineFormat:
		n, err := newLineFormat(s.Template)
		return compiledStage{newStage: n}, err
	case *syntax.LabelFormat:
		n, err := newLabelFormat(s)
		return compiledStage{newStage: n}, err
	case *syntax.Decolorize:
		return compiledStage{newStage: newDecolorizer()}, nil
	}
	c, err := compileShared(s)
	return compiledStage{newStage: sharedStage(c)}, err
}

// compileShared compiles a stage without state, which all runners share.
func compileShared(s syntax.Stage) (stage, error) {
	switch s := s.(type) {
	case *syntax.LineFilter:
		f, err := match.NewLineFilter(s)
		return (*lineFilterStage)(f), err
	case *syntax.JSONParser:
		if len(s.Extract) > 0 {
			return newPathParser(s.Extract)
		}
		return jsonParser{}, nil
	case *syntax.LogfmtParser:
		if len(s.Extract) > 0 {
			return newLogfmtPicker(s)
		}
		return &logfmtParser{strict: s.Strict, keepEmpty: s.KeepEmpty}, nil
	case *syntax.UnpackParser:
		return unpackParser{}, nil
	case *syntax.LabelFilter:
		c, err := newCondition(s.Condition)
		return &labelFilter{c}, err
	case *syntax.DropLabels:
		return dropper(newChoices(s.Labels)), nil
	case *syntax.KeepLabels:
		return keeper(newChoices(s.Labels)), nil
	}
	return nil, invalidf("unknown stage %T", s)
}

// lineFilterStage is a line filter after a stage that changes lines.
type lineFilterStage match.LineFilter

func (f *lineFilterStage) run(r *Runner, line []byte) ([]byte, bool) {
	return line, (*match.LineFilter)(f).Matches(line, r.stop)
}

// Filter returns a filter for one goroutine, or nil if no line filter leads the query.
func (p *Pipeline) Filter() *match.Filter {
	if len(p.filters) == 0 {
		return nil
	}
	return match.NewFilter(p.filters)
}

// Runner returns what runs all stages but the leading line filters, for one goroutine. A query without such
// stages needs one, too, for lines with structured metadata: its names may be those of stream labels.
func (p *Pipeline) Runner() *Runner {
	r := &Runner{p: p}
	r.labels.preserve = p.preserve
	for _, newStage := range p.stages {
		r.stages = append(r.stages, newStage(r))
	}
	if p.sampler != nil {
		r.extractor = newExtractor(p)
	}
	return r
}

// KeepsAll reports whether no line is dropped.
func (p *Pipeline) KeepsAll() bool { return len(p.filters) == 0 && len(p.stages) == 0 }

// TextFilter returns what a line must have for the query to want it, or nil if nothing is known. It may be
// used for streams whose labels are not known: conditions on structured metadata are among it only for names
// of which hidden says that no stream of the query has a label of them, nor can any line. hidden may be nil:
// none are.
func (p *Pipeline) TextFilter(absent func(name string) bool) *model.TextFilter {
	f := &model.TextFilter{Clauses: append([]model.TextClause(nil), p.lines...)}
clauses:
	for _, c := range p.metadata {
		for _, a := range c.Any {
			if absent == nil || !absent(a.Name) {
				continue clauses
			}
		}
		f.Clauses = append(f.Clauses, c)
	}
	if len(f.Clauses) == 0 {
		return nil
	}
	return f
}
