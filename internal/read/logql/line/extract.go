package line

import (
	"bytes"
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/line/extract"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// extractor takes a sample straight from a line: it finds the few fields that the sample needs and passes
// over the others, without labels in between. It serves pipelines of one parser and label filters, and gives
// up on every line that is not plain. The stages then run on that line, so they alone say what is right.
type extractor struct {
	finder  *extract.Finder
	names   []string // of the fields
	number  int      // the field that is unwrapped, or -1
	labels  []int    // the fields that are labels of the sample, sorted by name
	filters []stage

	// Of the stream: the values of fields that it has as labels. Parsers do not set those.
	stream [extract.MaxFields]string
	// harmless is the last structured metadata that has nothing to do with the fields.
	harmless []byte
}

// newExtractor returns an extractor for the samples of a pipeline, or nil if there is none for it.
func newExtractor(p *Pipeline) *extractor {
	if len(p.hints) == 0 || len(p.hints) > extract.MaxFields || len(p.source) == 0 {
		return nil
	}
	x := &extractor{names: p.hints, number: -1}
	for i, name := range p.hints {
		if strings.HasSuffix(name, extractedSuffix) || len(name) > maxNameBytes {
			return nil // such a name may stand for a field whose own name the stream has
		}
		if name == p.sampler.label {
			x.number = i
		}
	}
	if p.sampler.label != "" && x.number < 0 {
		return nil
	}
	for _, name := range p.sampler.labels {
		if p.sampler.none {
			break
		}
		i, ok := slices.BinarySearch(p.hints, name)
		if !ok {
			return nil
		}
		x.labels = append(x.labels, i)
	}
	_, rest := lead(p.source)
	for i, s := range rest {
		switch s := s.(type) {
		case *syntax.JSONParser:
			if i > 0 || len(s.Extract) > 0 {
				return nil
			}
			x.finder = extract.NewJSON(p.hints)
		case *syntax.LogfmtParser:
			if i > 0 || len(s.Extract) > 0 {
				return nil
			}
			x.finder = extract.NewLogfmt(p.hints, s.Strict, s.KeepEmpty)
		case *syntax.LabelFilter:
			// Its stage has been compiled, and is the same for all runners.
			if i == 0 {
				return nil
			}
			x.filters = append(x.filters, p.stages[i](nil))
		default:
			return nil
		}
	}
	if x.finder == nil {
		return nil
	}
	return x
}

// setStream says of which stream the next lines are.
func (x *extractor) setStream(l *labels) {
	x.finder.Ignored, x.harmless = 0, x.harmless[:0]
	for i := range l.stream {
		if k, ok := slices.BinarySearch(x.names, l.stream[i].name); ok {
			x.finder.Ignored |= 1 << k
			x.stream[k] = l.stream[i].value
		}
	}
}

// sample fills out with the sample of a line. It returns false for known if the stages must run on the line,
// and otherwise whether the line counts.
func (x *extractor) sample(r *Runner, line []byte, metadata model.Labels, out *Sample) (keep, known bool) {
	// Labels of a longer line may be too large.
	if len(line)+len(metadata) > MaxLabelBytes/2 || !x.ignores(metadata) {
		return false, false
	}
	if !x.finder.Find(line) {
		return false, false
	}
	return x.fill(r, len(line), metadata, out)
}

// sampleSplit is sample for a line of the finder's page, of so many bytes.
func (x *extractor) sampleSplit(r *Runner, line, bytes int, metadata model.Labels, out *Sample) (keep, known bool) {
	if bytes+len(metadata) > MaxLabelBytes/2 || !x.ignores(metadata) || !x.finder.FindSplit(line) {
		return false, false
	}
	return x.fill(r, bytes, metadata, out)
}

// fill fills out from the fields that were found in a line of so many bytes.
func (x *extractor) fill(r *Runner, bytes int, metadata model.Labels, out *Sample) (keep, known bool) {
	if len(x.filters) > 0 || len(r.p.sampler.filters) > 0 {
		x.setLabels(&r.labels, metadata)
		if keep, known := x.passes(r, x.filters); !keep || !known {
			return keep, known
		}
	}
	if x.number >= 0 {
		v, _ := x.value(x.number)
		if v == "" {
			return false, true
		}
		var err error
		if out.Value, err = convert(v, r.p.sampler.conversion); err != nil {
			return false, false
		}
		if keep, known := x.passes(r, r.p.sampler.filters); !keep || !known {
			return keep, known
		}
	}
	out.Bytes, out.Failed = bytes, false
	r.streamOut = r.streamOut[:0]
	for _, i := range x.labels {
		if v, ok := x.value(i); ok {
			r.streamOut = appendLabel(r.streamOut, x.names[i], v)
		}
	}
	out.Labels = r.streamOut
	return true, true
}

// streamHas reports whether a field is a label of the stream.
func (x *extractor) streamHas(field int) bool { return x.finder.Ignored>>field&1 != 0 }

// value returns the value of a field: that of the line or, if parsers leave the field alone, of the stream.
func (x *extractor) value(field int) (v string, ok bool) {
	if x.streamHas(field) {
		return x.stream[field], true
	}
	return x.finder.Value(field)
}

// passes runs label filters. What they find wrong with the line is left to the stages.
func (x *extractor) passes(r *Runner, filters []stage) (keep, known bool) {
	for _, f := range filters {
		_, ok := f.run(r, nil)
		if r.labels.err != "" || r.limit != nil {
			return false, false
		}
		if !ok {
			return false, true
		}
	}
	return true, true
}

// setLabels sets the labels that filters may look at.
func (x *extractor) setLabels(l *labels, metadata model.Labels) {
	l.reset(metadata)
	for i, name := range x.names {
		if v, ok := x.finder.Value(i); ok {
			l.setParsed(name, v)
		}
	}
}

// ignores reports whether structured metadata has nothing to do with the fields.
func (x *extractor) ignores(metadata model.Labels) bool {
	if len(metadata) == 0 || bytes.Equal(metadata, x.harmless) {
		return true
	}
	for name, _, rest, ok := metadata.Next(); ok; name, _, rest, ok = rest.Next() {
		i, isField := slices.BinarySearch(x.names, text(name))
		if isField && !x.streamHas(i) || string(name) == ErrorLabel || string(name) == ErrorDetailsLabel {
			return false
		}
	}
	x.harmless = append(x.harmless[:0], metadata...)
	return true
}
