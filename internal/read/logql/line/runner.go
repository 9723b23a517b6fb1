package line

import (
	"context"
	"slices"
	"unicode/utf8"

	"github.com/shaledb/shale/internal/model"
)

// Result is what a line has become. It may alias the line, its metadata and memory of the runner: it is valid
// until the runner's next line.
type Result struct {
	Line []byte
	// The labels by where they come from, each sorted by name, no name twice in all three, in the form of
	// model.Labels. But for one thing: a parsed label may be empty, which is not the same as none.
	Stream, Metadata, Parsed model.Labels
}

// stage is one step of a pipeline. It gives what it makes of the line, and false to drop it. The line must
// not be written to.
type stage interface {
	run(r *Runner, line []byte) ([]byte, bool)
}

// newStage makes a stage for one runner.
type newStage func(*Runner) stage

// sharedStage hands the same stage to all runners.
func sharedStage(s stage) newStage { return func(*Runner) stage { return s } }

// Runner runs the stages of a pipeline, but for the line filters that lead it, on one line at a time. It is
// used by one goroutine.
type Runner struct {
	p      *Pipeline
	stages []stage
	labels labels
	// extractor takes samples from plain lines without the stages; nil: the pipeline has none.
	extractor *extractor

	at       int64
	stage    int   // that is running
	quiet    bool  // what cannot be compared is not noted
	limit    error // set by the stage that met one
	ctx      context.Context
	stop     func() bool       // ended, or nil without a context
	charge   func(int64) error // nil: nothing is
	charged  int               // of the work of templates, the most that a line has taken
	json     jsonState
	paths    pathWalk
	logfmt   logfmtScanner
	unpacked []label
	work     int // what templates may still do for this line
	stream   model.Labels

	shape                             shape
	streamOut, metadataOut, parsedOut []byte
}

// Bind sets the context, which ends the work on a line between stages and within long ones, and the function
// that charges the memory of templates. Charges are kept until Bind is called again: what the former function
// has charged is the caller's to give back, and buffers are charged to the new one.
func (r *Runner) Bind(ctx context.Context, charge func(bytes int64) error) {
	r.ctx, r.stop, r.charge, r.charged = ctx, r.ended, charge, 0
}

// SetStream says that further lines are of a stream with these labels, which must stay as they are until it
// is called again.
func (r *Runner) SetStream(l model.Labels) {
	r.stream = l
	r.labels.setStream(l)
	if r.extractor != nil {
		r.extractor.setStream(&r.labels)
	}
}

// Process runs the stages on a line that has passed the leading line filters. It fills out and reports
// whether the line stays. An error is of class model.ErrLimit, of what Bind was given, or of the context: the
// query must end with it. What merely goes wrong with a line is in the labels.
func (r *Runner) Process(at int64, line []byte, metadata model.Labels, out *Result) (bool, error) {
	line, ok, err := r.runStages(at, line, metadata)
	if ok {
		out.Line = line
		r.result(out)
	}
	return ok, err
}

// runStages runs the stages on a line and returns what they leave of it, and whether it stays.
func (r *Runner) runStages(at int64, line []byte, metadata model.Labels) ([]byte, bool, error) {
	l := &r.labels
	r.at, r.work, r.limit = at, MaxTemplateWork, nil
	l.reset(metadata)
	for i, s := range r.stages {
		var ok bool
		if r.stage = i; i > 0 && r.ended() {
			return nil, false, r.limit
		}
		line, ok = s.run(r, line)
		if r.limit != nil {
			return nil, false, r.limit
		}
		if l.overflow {
			return nil, false, limitf("a line has more than %d labels, or labels of more than %d bytes", MaxLabels, MaxLabelBytes)
		}
		if !ok {
			return nil, false, nil
		}
	}
	return line, true, nil
}

// ended reports whether the query has ended.
func (r *Runner) ended() bool {
	if r.ctx == nil || r.ctx.Err() == nil {
		return false
	}
	r.limit = r.ctx.Err()
	return true
}

// result fills in the labels. It does not write labels again that no stage has changed.
func (r *Runner) result(out *Result) {
	l := &r.labels
	out.Stream, out.Metadata, out.Parsed = r.stream, nil, nil
	switch {
	case l.asItCame():
		return
	case l.metadataRaw:
		out.Metadata = l.metadata
		return
	}
	if len(l.deleted) > 0 || slices.ContainsFunc(l.stream, func(x label) bool { return l.find(x.name) >= 0 }) {
		r.streamOut = r.streamOut[:0]
		for i := range l.stream {
			if !l.hidden(l.stream[i].name) {
				r.streamOut = appendLabel(r.streamOut, l.stream[i].name, l.stream[i].value)
			}
		}
		out.Stream = r.streamOut
	}
	l.sorted = append(l.sorted[:0], l.added...)
	l.sorted = l.appendErrors(l.sorted)
	r.shape.sort(l.sorted)
	r.metadataOut, r.parsedOut = r.metadataOut[:0], r.parsedOut[:0]
	for _, i := range r.shape.order {
		switch x := &l.sorted[i]; {
		case x.category == ofMetadata:
			r.metadataOut = appendLabel(r.metadataOut, x.name, x.value)
		default:
			r.parsedOut = appendLabel(r.parsedOut, x.name, x.value)
		}
	}
	out.Metadata, out.Parsed = r.metadataOut, r.parsedOut
}

// wants reports whether a parsed label of this name is needed by a stage or by the result.
func (r *Runner) wants(name string) bool {
	if r.p.needed == nil {
		return true
	}
	_, ok := r.p.needed[name]
	if !ok {
		r.labels.touched = true // as it would be if the label were set
	}
	return ok
}

// skips reports whether the label of a key is surely not needed, by its length alone. It saves the look-ups
// of names for most keys of a line.
func (r *Runner) skips(key []byte) bool {
	if r.p.needed == nil || len(key) == 0 || r.p.neededLengths>>min(len(key), 63)&1 != 0 || isDigit(key[0]) {
		return false
	}
	for _, c := range key {
		if c <= ' ' || c >= utf8.RuneSelf { // the name may be of another length
			return false
		}
	}
	r.labels.touched = true // as it would be if the label were set
	return true
}

// admit returns the name under which a parser sets a label, and false if it must not: it is not wanted, or is
// there already.
func (r *Runner) admit(name string) (string, bool) {
	if r.labels.taken(name) {
		name = r.labels.extracted(name)
	}
	return name, !r.labels.wasParsed(name) && r.wants(name)
}

// extract sets a parsed label. It returns false if that drops the line.
func (r *Runner) extract(name, value string) bool {
	name, ok := r.admit(name)
	if !ok {
		return true
	}
	r.labels.setParsed(name, value)
	return r.accepts(name)
}

// accepts reports whether a label that a parser has just set leaves the line a chance: false if a later
// filter that looks only at this label will refuse it.
func (r *Runner) accepts(name string) bool {
	for i := range r.p.early {
		if e := &r.p.early[i]; e.label == name && e.stage > r.stage {
			r.quiet = true
			ok := e.condition.holds(r)
			r.quiet = false
			return ok
		}
	}
	return true
}
