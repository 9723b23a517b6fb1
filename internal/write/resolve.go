package write

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/shaledb/shale/internal/model"
)

// scratch is what one push needs beside its batch.
type scratch struct {
	fresh  []uint32 // series whose labels are not known to be durable
	dead   []bool   // series that are left out; empty: none
	labels model.LabelsBuilder
	bytes  []byte
}

// resolve finds the series that are new and gives them their labels.
func (p *Path) resolve(b *model.Batch, s *scratch, res *Result) (err error) {
	s.dead = s.dead[:0]
	b.Labels.Reset() // an earlier push of the batch may have failed
	if s.fresh, err = p.o.Head.Resolve(b, s.fresh[:0]); err != nil || len(s.fresh) == 0 {
		return err
	}
	if !p.materialise(b, s, res) {
		return nil
	}
	// Some senders' labels are not canonical on the wire. With the right keys, look once more which series are new.
	if s.fresh, err = p.o.Head.Resolve(b, s.fresh[:0]); err != nil {
		return err
	}
	var still model.LabelTable
	for i := range b.Labels.Len() {
		if _, fresh := slices.BinarySearch(s.fresh, b.Labels.Series[i]); fresh {
			still.Append(b.Labels.Series[i], b.Labels.At(i))
		}
	}
	b.Labels = still
	return nil
}

// materialise gives the fresh series of the batch their labels and marks those as dead whose labels are not allowed;
// these never become known, so they are checked again each time they are sent. It corrects the keys of series whose
// labels were not canonical on the wire, and reports whether there were any.
func (p *Path) materialise(b *model.Batch, s *scratch, res *Result) (corrected bool) {
	for _, i := range s.fresh {
		s.labels.Reset()
		b.BuildLabels(int(i), &s.labels)
		reason, why := p.o.Limits.check(&s.labels)
		if reason == "" {
			var err error
			if s.bytes, err = s.labels.Append(s.bytes[:0]); err == nil && len(s.bytes) > model.MaxLabelBytes {
				reason, why = ReasonValueTooLong, fmt.Sprintf("%d bytes of labels, and a series may have %d", len(s.bytes), model.MaxLabelBytes)
			} else if err == nil {
				if k := model.Labels(s.bytes).Key(p.o.Seed, b.Signal); k != b.Keys[i] {
					b.Keys[i], corrected = k, true
				}
				b.Labels.Append(i, model.Labels(s.bytes))
				continue
			} else {
				reason, why = ReasonDuplicateLabel, err.Error()
			}
		}
		if len(s.dead) == 0 {
			s.dead = append(s.dead, make([]bool, len(b.Keys))...)
		}
		s.dead[i] = true
		res.reject(reason, int(b.Samples.End(int(i))-b.Samples.Begin(int(i))), func() string { return describe(&s.labels) + ": " + why })
	}
	return corrected
}

// check returns the reason for which a label set is not allowed, and a text, or "".
func (l *Limits) check(lb *model.LabelsBuilder) (reason, why string) {
	if lb.Len() == 0 {
		return ReasonLabels, "the series has no labels"
	}
	if l.MaxLabels > 0 && lb.Len() > l.MaxLabels {
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
