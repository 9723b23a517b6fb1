package write

import (
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/shaledb/shale/internal/model"
)

// Reserver is a [model.LabelSource] whose request pays for the labels that a push takes out of it: for known series they
// are never built, so a receiver that has reserved its body alone has not reserved them.
type Reserver interface {
	// Reserve asks for memory before it is used. Its error ends the push.
	Reserve(bytes int64) error
}

// reserveStep is by how many bytes labels are reserved at a time.
const reserveStep = 256 << 10

// scratch is what one push needs beside its batch.
type scratch struct {
	fresh  []uint32 // series whose labels are not known to be durable
	dead   []bool   // series that are left out; empty: none
	later  []bool   // series that must not be created yet, if creation is held back
	labels model.LabelsBuilder
	bytes  []byte
}

// giveScratch takes scratch back, without its hold on the memory of a request.
func (p *Path) giveScratch(s *scratch) {
	if cap(s.fresh) > maxPooledRows || cap(s.dead) > maxPooledRows || cap(s.bytes) > maxPooledBytes {
		return
	}
	if len(s.fresh) > 0 || s.labels.Len() > 0 {
		s.labels = model.LabelsBuilder{}
	}
	p.scratch.Put(s)
}

// resolve finds the series that are new and gives them their labels.
func (p *Path) resolve(b *model.Batch, s *scratch, res *Result) (err error) {
	s.dead = s.dead[:0]
	b.Labels.Reset() // an earlier push of the batch may have failed
	if s.fresh, err = p.o.Head.Resolve(b, s.fresh[:0]); err != nil || len(s.fresh) == 0 {
		return err
	}
	corrected, err := p.materialise(b, s, res)
	if err != nil || !corrected {
		return err
	}
	// Some senders' labels are not canonical on the wire. With the right keys, look once more which series are new.
	if s.fresh, err = p.o.Head.Resolve(b, s.fresh[:0]); err != nil {
		return err
	}
	keepLabels(&b.Labels, func(series uint32) bool {
		_, fresh := slices.BinarySearch(s.fresh, series)
		return fresh
	})
	return nil
}

// keepLabels drops the label sets for which keep is false. They are moved within the memory that they have: what is
// overwritten has been read, since no set moves up.
func keepLabels(t *model.LabelTable, keep func(series uint32) bool) {
	n, begin, bytes := 0, uint32(0), t.Bytes[:0]
	for i, series := range t.Series {
		end := t.Ends[i]
		if keep(series) {
			bytes = append(bytes, t.Bytes[begin:end]...)
			t.Series[n], t.Ends[n] = series, uint32(len(bytes))
			n++
		}
		begin = end
	}
	t.Series, t.Ends, t.Bytes = t.Series[:n], t.Ends[:n], bytes
}

// materialise gives the fresh series of the batch their labels and marks those as dead whose labels are not allowed;
// these never become known, so they are checked again each time they are sent. It corrects the keys of series whose
// labels were not canonical on the wire, and reports whether there were any.
func (p *Path) materialise(b *model.Batch, s *scratch, res *Result) (corrected bool, err error) {
	payer, _ := b.Source.(Reserver)
	source, _ := b.Source.(CanonicalSource)
	reserved := 0
	var last model.Labels
	for _, i := range s.fresh {
		l := canonicalLabels(source, b, int(i))
		if !p.ordinary(b.Signal, last, l) {
			var changed bool
			if l, changed = p.build(b, s, i, res); l == nil {
				continue
			}
			corrected = corrected || changed
		}
		if more := len(b.Labels.Bytes) + len(l) - reserved; more > 0 && payer != nil {
			step := max(more, reserveStep)
			if err := payer.Reserve(int64(step)); err != nil {
				return false, err
			}
			reserved += step
		}
		b.Labels.Append(i, l)
		last = b.Labels.At(b.Labels.Len() - 1)
	}
	return corrected, nil
}

// build builds the labels of a series and corrects its key, and reports whether it had to. It marks the series as dead and
// returns nil if its labels are not allowed.
func (p *Path) build(b *model.Batch, s *scratch, i uint32, res *Result) (_ model.Labels, corrected bool) {
	s.labels.Reset()
	b.BuildLabels(int(i), &s.labels)
	var reason, why string
	if s.bytes, reason, why = p.canonical(b.Signal, &s.labels, s.bytes[:0]); reason != "" {
		if len(s.dead) == 0 {
			s.dead = append(s.dead, make([]bool, len(b.Keys))...)
		}
		s.dead[i] = true
		res.Rejected.Add(reason, countSeries(b, int(i)), func() string { return Describe(&s.labels) + ": " + why })
		return nil, false
	}
	if k := model.Labels(s.bytes).Key(p.o.Seed, b.Signal); k != b.Keys[i] {
		b.Keys[i], corrected = k, true
	}
	return model.Labels(s.bytes), corrected
}

// canonical appends the canonical form of labels to dst, or returns the reason for which they are not allowed, and a
// text.
func (p *Path) canonical(s model.Signal, lb *model.LabelsBuilder, dst []byte) (_ []byte, reason, why string) {
	if reason, why = p.o.Limits.check(s, lb); reason != "" {
		return dst, reason, why
	}
	dst, err := lb.Append(dst)
	switch {
	case err != nil:
		return dst, ReasonDuplicateLabel, err.Error()
	case len(dst) > model.MaxLabelBytes:
		return dst, ReasonLabelsTooLong, fmt.Sprintf("%d bytes of labels, and a series may have %d", len(dst), model.MaxLabelBytes)
	}
	return dst, "", ""
}

// check returns the reason for which a label set is not allowed, and a text, or "".
func (l *Limits) check(s model.Signal, lb *model.LabelsBuilder) (reason, why string) {
	if lb.Len() == 0 {
		return ReasonLabels, "the series has no labels"
	}
	if lb.Len() > l.labels(s) {
		return ReasonTooManyLabels, fmt.Sprintf("%d labels, and limits.labels allows %d", lb.Len(), l.MaxLabels)
	}
	for i := range lb.Len() {
		n, v := lb.At(i)
		switch {
		case len(n) == 0:
			return ReasonLabels, "a label has an empty name"
		case !utf8.Valid(n):
			return ReasonLabels, fmt.Sprintf("the label name %.100q is not UTF-8", n)
		case !utf8.Valid(v):
			return ReasonLabels, fmt.Sprintf("the value of label %.100q is not UTF-8", n)
		case l.MaxNameBytes > 0 && len(n) > l.MaxNameBytes:
			return ReasonNameTooLong, fmt.Sprintf("a label name of %d bytes, and limits.label-name-bytes allows %d", len(n), l.MaxNameBytes)
		case l.MaxValueBytes > 0 && len(v) > l.MaxValueBytes:
			return ReasonValueTooLong, fmt.Sprintf("the value of label %.100q has %d bytes, and limits.label-value-bytes allows %d", n, len(v), l.MaxValueBytes)
		}
	}
	return "", ""
}

// labels returns how many labels a series of a signal may have. Of logs that is one more: a service_name, which mostly was not
// sent but made here, is not counted, as the rules of lines have it. They have refused what has too many.
func (l *Limits) labels(s model.Signal) int {
	switch {
	case l.MaxLabels <= 0:
		return math.MaxInt
	case s == model.Logs:
		return l.MaxLabels + 1
	}
	return l.MaxLabels
}
