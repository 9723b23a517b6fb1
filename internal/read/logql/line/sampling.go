package line

import (
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// Sampling says what a range aggregation takes from each line: a number, and the labels of its series.
type Sampling struct {
	Unwrap *syntax.Unwrap // nil: the line itself counts
	// Labels are those that the series keeps or, with Without, those that it does not have. Without any, it has
	// all labels.
	Labels  []string
	Without bool
	// None says that all lines are of one series without labels.
	None bool
}

// sampler is a compiled Sampling.
type sampler struct {
	label      string // that is unwrapped, or empty
	conversion syntax.Conversion
	filters    []stage // after the conversion
	labels     []string
	without    bool
	none       bool
}

// Sample is what a range aggregation takes from a line. Its labels are valid until the runner's next line.
type Sample struct {
	Value float64 // of the unwrapped label
	Bytes int     // of the line after all stages
	// Labels are canonical, but a value may be empty. A line with an error keeps all labels.
	Labels model.Labels
	// Failed says that something went wrong with the line, and that the query does not ask for such lines.
	Failed bool
}

// CompileSampling compiles the stages of a range aggregation. Its runners offer [Runner.Sample]. Parsers
// extract only what the sample needs: like Loki's, they stop once they have it, and so do not see errors
// later in the line.
func CompileSampling(stages []syntax.Stage, s Sampling) (*Pipeline, error) {
	p, err := Compile(stages)
	if err != nil {
		return nil, err
	}
	x := &sampler{labels: slices.Clone(s.Labels), without: s.Without, none: s.None}
	hints, all := requiredLabels(stages)
	if u := s.Unwrap; u != nil {
		x.label, x.conversion = u.Label, u.Conversion
		for _, c := range u.Filters {
			f, err := newCondition(c)
			if err != nil {
				return nil, stageError(&syntax.LabelFilter{Condition: c}, err)
			}
			x.filters = append(x.filters, &labelFilter{f})
			hints = append(hints, conditionLabels(c)...)
		}
		if len(x.labels) == 0 || x.without {
			x.without = true
			x.labels = append(x.labels, u.Label)
		}
		hints = append(hints, u.Label)
	}
	slices.Sort(x.labels)
	x.labels = slices.Compact(x.labels)
	p.sampler = x
	if !x.none && (x.without || len(x.labels) == 0) {
		return p, nil // any label may be needed
	}
	p.require(append(hints, x.labels...), all)
	return p, nil
}

// require lets parsers extract no other labels than those named, unless all may be needed.
func (p *Pipeline) require(names []string, all bool) {
	for _, n := range names {
		if own, ok := strings.CutSuffix(n, extractedSuffix); ok {
			names = append(names, own) // parsers look names up before they see that they are taken
		}
	}
	slices.Sort(names)
	p.hints = slices.DeleteFunc(slices.Compact(names), func(n string) bool { return n == "" })
	p.parsesNothing = len(p.hints) == 0 && !all
	_, p.preserve = slices.BinarySearch(p.hints, ErrorLabel)
	if all {
		p.hints = nil
		return
	}
	p.setNeeded(neededLabels(p.source, p.hints))
}

// CountsWhole reports whether lines that have passed the leading line filters count as they are: no stage
// looks at them, and no label is unwrapped. A parser of which nothing is needed does not look at them.
func (p *Pipeline) CountsWhole() bool {
	return p.sampler != nil && p.sampler.label == "" && (len(p.stages) == 0 || p.parsesNothing && onlyParses(p.source))
}

// onlyParses reports whether stages are line filters and parsers that do nothing if no label is needed.
func onlyParses(stages []syntax.Stage) bool {
	_, rest := lead(stages)
	for _, s := range rest {
		switch s := s.(type) {
		case *syntax.JSONParser:
			if len(s.Extract) > 0 {
				return false
			}
		case *syntax.LogfmtParser:
			if len(s.Extract) > 0 {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// NeedsMetadata reports whether the labels of a sample may be of structured metadata, for a stream with these
// labels.
func (p *Pipeline) NeedsMetadata(stream model.Labels) bool {
	s := p.sampler
	if s.none {
		return false
	}
	if s.without || len(s.labels) == 0 {
		return true
	}
	for _, name := range s.labels {
		if stream.Get(name) == nil {
			return true
		}
		// Metadata whose name the stream has gets this one, and hides the stream's.
		if own, ok := strings.CutSuffix(name, extractedSuffix); ok && stream.Get(own) != nil {
			return true
		}
	}
	return false
}

// CountedLabels returns the labels of streams that samples get which no stage looks at. ok is false if they
// may get any.
func (p *Pipeline) CountedLabels() (names []string, ok bool) {
	s := p.sampler
	switch {
	case s.none:
		return nil, true
	case s.without || len(s.labels) == 0:
		return nil, false
	}
	// Such a label may be metadata because of another label of the stream.
	isExtracted := func(name string) bool { return strings.HasSuffix(name, extractedSuffix) }
	return s.labels, !slices.ContainsFunc(s.labels, isExtracted)
}

// requiredLabels returns the labels whose values stages look at, and whether a template may look at any.
func requiredLabels(stages []syntax.Stage) (names []string, all bool) {
	for _, s := range stages {
		switch s := s.(type) {
		case *syntax.LabelFilter:
			names = append(names, conditionLabels(s.Condition)...)
		case *syntax.LineFormat:
			fields, any := templateFields("line", s.Template)
			names, all = append(names, fields...), all || any
		case *syntax.LabelFormat:
			for _, a := range s.Assignments {
				if a.Rename {
					names = append(names, a.Value)
					continue
				}
				fields, any := templateFields("label", a.Value)
				names, all = append(names, fields...), all || any
			}
		}
	}
	return names, all
}

func conditionLabels(c syntax.Condition) (names []string) {
	syntax.Walk(c, func(n syntax.Node) bool {
		names = append(names, conditionLabel(n))
		return true
	})
	return names
}

// Sample runs the stages on a line that has passed the leading line filters. It fills out and reports whether
// the line counts. Errors are those of [Runner.Process]. The pipeline must be one of [CompileSampling].
func (r *Runner) Sample(at int64, line []byte, metadata model.Labels, out *Sample) (bool, error) {
	if r.extractor != nil {
		if keep, known := r.extractor.sample(r, line, metadata, out); known {
			return keep, nil
		}
	}
	line, ok, err := r.runStages(at, line, metadata)
	if !ok {
		return false, err
	}
	s := r.p.sampler
	if s.label != "" {
		if out.Value, ok = r.number(s.label, s.conversion); !ok {
			return false, nil
		}
		for _, f := range s.filters {
			if _, ok := f.run(r, line); !ok {
				return false, r.limit
			}
		}
	}
	out.Bytes = len(line)
	out.Labels, out.Failed = r.sampleLabels(s)
	return true, nil
}

// Splits reports whether lines may be sampled without putting them together.
func (r *Runner) Splits() bool { return r.extractor != nil }

// SetPage says that SampleSplit is about the lines of a page. The runner must be one that splits.
func (r *Runner) SetPage(p *model.SplitText) { r.extractor.finder.SetPage(p) }

// SampleSplit is [Runner.Sample] for a line of the page, of so many bytes. It returns false for known if it
// needs the line itself.
func (r *Runner) SampleSplit(line, bytes int, metadata model.Labels, out *Sample) (keep, known bool) {
	return r.extractor.sampleSplit(r, line, bytes, metadata, out)
}

// sampleLabels returns the labels of a line's series, and whether the line has an error that the query does
// not ask for. It must not lose an error, so grouping leaves labels of errors alone.
func (r *Runner) sampleLabels(s *sampler) (model.Labels, bool) {
	l := &r.labels
	if l.err != "" {
		preserved, _ := l.get(preserveErrorLabel)
		l.sorted = l.all(l.sorted[:0])
		return r.appendSorted(), preserved != "true"
	}
	switch {
	case s.none:
		return nil, false
	case len(s.labels) == 0 && l.asItCame():
		return r.stream, false
	case len(s.labels) == 0:
		l.sorted = l.all(l.sorted[:0])
		return r.appendSorted(), false
	case s.without:
		l.sorted = l.sorted[:0]
		for i := range l.stream {
			if x := &l.stream[i]; !slices.Contains(s.labels, x.name) && !l.hidden(x.name) {
				l.sorted = append(l.sorted, *x)
			}
		}
		for i := range l.added {
			if x := &l.added[i]; !slices.Contains(s.labels, x.name) {
				l.sorted = append(l.sorted, *x)
			}
		}
		return r.appendSorted(), false
	}
	r.streamOut = r.streamOut[:0]
	for _, name := range s.labels {
		if v, ok := l.get(name); ok {
			r.streamOut = appendLabel(r.streamOut, name, v)
		}
	}
	return r.streamOut, false
}

// appendSorted sorts labels.sorted and returns it in the form of model.Labels.
func (r *Runner) appendSorted() model.Labels {
	all := r.labels.sorted
	r.shape.sort(all)
	r.streamOut = r.streamOut[:0]
	for _, i := range r.shape.order {
		r.streamOut = appendLabel(r.streamOut, all[i].name, all[i].value)
	}
	return r.streamOut
}

// parsed reports whether parsers have nothing more to do: what the sample needs was found before.
func (r *Runner) parsed() bool {
	if r.p.parsesNothing {
		return true
	}
	if len(r.p.hints) == 0 {
		return false
	}
	for _, name := range r.p.hints {
		if !r.labels.wasParsed(name) {
			return false
		}
	}
	return true
}

// AppendLabel appends a label in the form of model.Labels, but its value may be empty.
func AppendLabel(dst []byte, name, value string) []byte { return appendLabel(dst, name, value) }
