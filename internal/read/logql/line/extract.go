package line

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// extractor takes a sample straight from a line: it finds the few fields that the sample needs and passes
// over the others, without labels in between. It serves pipelines of one parser and label filters, and gives
// up on every line that is not plain. The stages then run on that line, so they alone say what is right.
//
// Lines of a stream mostly have the same keys in the same order. So the extractor first compares with the key
// that followed last time, which takes no search and no lookup.
type extractor struct {
	find      func(*extractor, []byte) bool
	strict    bool // of logfmt
	keepEmpty bool
	names     []string // of the fields
	number    int      // the field that is unwrapped, or -1
	labels    []int    // the fields that are labels of the sample, sorted by name
	filters   []stage

	// Of the stream: the fields that it has as labels, which parsers do not set, and their values.
	streamHas uint32
	stream    [maxExtracted]string
	// harmless is the last structured metadata that has nothing to do with the fields.
	harmless []byte

	// Of the line: the fields found, and their values.
	found  uint32
	values [maxExtracted][]byte

	keys   keyTable
	arrays jsonState // skips arrays
}

// maxExtracted bounds the fields of an extractor.
const maxExtracted = 16

// newExtractor returns an extractor for the samples of a pipeline, or nil if there is none for it.
func newExtractor(p *Pipeline) *extractor {
	if len(p.hints) == 0 || len(p.hints) > maxExtracted || len(p.source) == 0 {
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
			x.find = (*extractor).findJSON
		case *syntax.LogfmtParser:
			if i > 0 || len(s.Extract) > 0 {
				return nil
			}
			x.find, x.strict, x.keepEmpty = (*extractor).findLogfmt, s.Strict, s.KeepEmpty
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
	if x.find == nil {
		return nil
	}
	x.keys.forget()
	return x
}

// setStream says of which stream the next lines are.
func (x *extractor) setStream(l *labels) {
	x.streamHas, x.harmless = 0, x.harmless[:0]
	for i := range l.stream {
		if k, ok := slices.BinarySearch(x.names, l.stream[i].name); ok {
			x.streamHas |= 1 << k
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
	x.found = 0
	if x.keys.full {
		x.keys.forget()
	}
	if !x.find(x, line) {
		return false, false
	}
	if len(x.filters) > 0 || len(r.p.sampler.filters) > 0 {
		x.setLabels(&r.labels, metadata)
		if keep, known := x.passes(r, x.filters); !keep || !known {
			return keep, known
		}
	}
	if x.number >= 0 {
		var v string
		if i := x.number; x.found>>i&1 != 0 {
			v = text(x.values[i])
		} else if x.streamHas>>i&1 != 0 {
			v = x.stream[i]
		}
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
	out.Bytes, out.Failed = len(line), false
	r.streamOut = r.streamOut[:0]
	for _, i := range x.labels {
		switch {
		case x.found>>i&1 != 0:
			r.streamOut = appendLabel(r.streamOut, x.names[i], text(x.values[i]))
		case x.streamHas>>i&1 != 0:
			r.streamOut = appendLabel(r.streamOut, x.names[i], x.stream[i])
		}
	}
	out.Labels = r.streamOut
	return true, true
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
		if x.found>>i&1 != 0 {
			l.setParsed(name, text(x.values[i]))
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
		if isField && x.streamHas>>i&1 == 0 || string(name) == ErrorLabel || string(name) == ErrorDetailsLabel {
			return false
		}
	}
	x.harmless = append(x.harmless[:0], metadata...)
	return true
}

// take notes the value of a field, unless an earlier key or the stream has the field. It returns false if the
// value is not plain: it may not have what is unescaped or replaced.
func (x *extractor) take(field int, value []byte, unescapes bool) bool {
	if bit := uint32(1) << field; (x.found|x.streamHas)&bit == 0 {
		if !plain(value, unescapes) {
			return false
		}
		x.values[field] = value
		x.found |= bit
	}
	return true
}

// complete reports whether all fields were found. A field that the stream has never is.
func (x *extractor) complete() bool { return x.found == 1<<len(x.names)-1 }

// plain reports whether a value is what it looks like.
func plain(value []byte, unescapes bool) bool {
	ascii := true
	for _, c := range value {
		if c >= utf8.RuneSelf {
			ascii = false
		}
		if c == '\\' && unescapes {
			return false
		}
	}
	return ascii || !hasInvalid(value)
}
