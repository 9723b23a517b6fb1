package write

import (
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/shaledb/shale/internal/model"
)

// Reserver is a [model.LabelSource] that reserves memory for the labels that a push copies from it.
// Labels of known series are never copied, so the receiver has reserved memory for the body only.
type Reserver interface {
	// Reserve reserves memory before it is used. Its error ends the push.
	Reserve(bytes int64) error
}

// reserveStep is the least number of bytes that is reserved for labels at a time.
const reserveStep = 256 << 10

// scratch is the reusable memory of one push.
type scratch struct {
	fresh     []uint32 // series whose labels are not known to be durable
	invalid   []bool   // series whose labels are not allowed; empty: none
	postponed []bool   // series that may not be created yet
	labels    model.LabelsBuilder
	built     int // labels for which memory is reserved
	copied    int // bytes of a part of the batch for which memory is reserved
	bytes     []byte
}

// putScratch returns scratch to the pool. It must not keep the memory of the request alive.
func (p *Path) putScratch(s *scratch) {
	if cap(s.fresh) > maxPooledRows || cap(s.invalid) > maxPooledRows || cap(s.bytes) > maxPooledBytes {
		return
	}
	if len(s.fresh) > 0 || s.labels.Len() > 0 {
		s.labels = model.LabelsBuilder{}
	}
	p.scratch.Put(s)
}

// resolve finds the series that are new and adds their labels to the batch.
func (p *Path) resolve(b *model.Batch, s *scratch, limits *Limits, res *Result) (err error) {
	s.invalid, s.built, s.copied = s.invalid[:0], 0, 0
	b.Labels.Reset() // left over if an earlier push of the batch failed
	if n := len(b.Keys); n > cap(s.fresh) {
		if err := reserve(b, ResolveBytes*n); err != nil {
			return err
		}
		s.fresh = model.Sized(s.fresh[:0], n)
	}
	if s.fresh, err = p.o.Head.Resolve(b, s.fresh[:0]); err != nil || len(s.fresh) == 0 {
		return err
	}
	corrected, err := p.addLabels(b, s, limits, res)
	if err != nil || !corrected {
		return err
	}
	// Some senders' labels are not canonical on the wire. With the corrected keys, some series may turn
	// out to be known.
	if s.fresh, err = p.o.Head.Resolve(b, s.fresh[:0]); err != nil {
		return err
	}
	keepLabels(&b.Labels, func(series uint32) bool {
		_, fresh := slices.BinarySearch(s.fresh, series)
		return fresh
	})
	return nil
}

// keepLabels drops the label sets for which keep is false. It moves the others in place; a set only
// moves down, so it never overwrites bytes that are still to be read.
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

// addLabels adds the labels of the fresh series to the batch and marks the series whose labels are
// not allowed as invalid. They never become known, so they are checked each time they are sent. It
// also corrects the keys of series whose labels were not canonical on the wire, and reports whether
// there were any.
func (p *Path) addLabels(b *model.Batch, s *scratch, limits *Limits, res *Result) (corrected bool, err error) {
	source, _ := b.Source.(CanonicalSource)
	t := &b.Labels
	if n := len(s.fresh); n > cap(t.Series) {
		if err := reserve(b, (4+4)*n); err != nil {
			return false, err
		}
		t.Series, t.Ends = model.Sized(t.Series, n), model.Sized(t.Ends, n)
	}
	reserved := 0
	var last model.Labels
	for _, i := range s.fresh {
		l := canonicalLabels(source, b, int(i))
		if !limits.usableAsIs(b.Signal, last, l) {
			var changed bool
			if l, changed, err = p.build(b, s, i, l.Len(), limits, res); err != nil {
				return false, err
			}
			if l == nil {
				continue
			}
			corrected = corrected || changed
		}
		if reserved, err = roomForLabels(b, len(l), reserved); err != nil {
			return false, err
		}
		t.Append(i, l)
		last = t.At(t.Len() - 1)
	}
	return corrected, nil
}

// ResolveBytes is the memory of a series while it is resolved, which a push reserves first: its number, and
// its marks.
const ResolveBytes = 4 + 1 + 1

// fewLabels is how many labels a set may have, whose memory is not reserved while it is built.
const fewLabels = 1 << 10

// reserve reserves memory if the source of a batch can.
func reserve(b *model.Batch, bytes int) error {
	if r, ok := b.Source.(Reserver); ok {
		return r.Reserve(int64(bytes))
	}
	return nil
}

// roomForLabels makes room for a label set of n bytes. It returns how many bytes are reserved for all sets;
// before is that of the last call. Sets that fit into the memory of an earlier batch are reserved as they
// come.
func roomForLabels(b *model.Batch, n, before int) (reserved int, err error) {
	t := &b.Labels
	if n += len(t.Bytes); n > cap(t.Bytes) {
		n = max(n, 2*cap(t.Bytes))
	}
	if n > before {
		step := max(n-before, reserveStep)
		if err := reserve(b, step); err != nil {
			return before, err
		}
		before += step
	}
	if n > cap(t.Bytes) {
		t.Bytes = model.Sized(t.Bytes, n)
	}
	return before, nil
}

// build builds the labels of a series, corrects its key if necessary, and reports whether it did. If the
// labels are not allowed, it marks the series as invalid and returns nil. It reserves memory for n labels.
func (p *Path) build(b *model.Batch, s *scratch, i uint32, n int, limits *Limits, res *Result) (_ model.Labels, corrected bool, err error) {
	if n > max(fewLabels, s.built) {
		if err := reserve(b, model.LabelBuildBytes*(n-s.built)); err != nil {
			return nil, false, err
		}
		s.built = n
	}
	s.labels.Reset()
	s.labels.Size(n)
	b.BuildLabels(int(i), &s.labels)
	var reason, why string
	if s.bytes, reason, why = limits.canonical(b.Signal, &s.labels, s.bytes[:0]); reason != "" {
		if len(s.invalid) == 0 {
			s.invalid = model.Sized(s.invalid, len(b.Keys))[:len(b.Keys)]
			clear(s.invalid)
		}
		s.invalid[i] = true
		at := int(i)
		if b.Signal == model.Logs {
			at = int(b.Text.Begin(at))
		}
		res.Rejected.AddAt(at, reason, countSeries(b, int(i)), func() string { return Describe(&s.labels) + ": " + why })
		return nil, false, nil
	}
	if k := model.Labels(s.bytes).Key(p.o.Seed, b.Signal); k != b.Keys[i] {
		b.Keys[i], corrected = k, true
	}
	return model.Labels(s.bytes), corrected, nil
}

// canonical appends the canonical form of labels to dst. If they are not allowed, it returns a reason
// and an explanation.
func (l *Limits) canonical(s model.Signal, lb *model.LabelsBuilder, dst []byte) (_ []byte, reason, why string) {
	if reason, why = l.check(s, lb); reason != "" {
		return dst, reason, why
	}
	dst, err := lb.Append(dst)
	switch {
	case err != nil:
		return dst, ReasonDuplicateLabel, err.Error()
	case len(dst) > model.MaxLabelBytes:
		return dst, ReasonLabelsTooLong, fmt.Sprintf("the labels take %d bytes, the limit for a series is %d", len(dst), model.MaxLabelBytes)
	}
	return dst, "", ""
}

// check returns the reason why a label set is not allowed and an explanation, or two empty strings.
func (l *Limits) check(s model.Signal, lb *model.LabelsBuilder) (reason, why string) {
	if lb.Len() == 0 {
		return ReasonLabels, "the series has no labels"
	}
	if lb.Len() > l.labels(s) {
		return ReasonTooManyLabels, fmt.Sprintf("the series has %d labels, limits.labels is %d", lb.Len(), l.MaxLabels)
	}
	for i := range lb.Len() {
		n, v := lb.At(i)
		switch {
		case len(n) == 0:
			return ReasonLabels, "a label has an empty name"
		case !utf8.Valid(n):
			return ReasonLabels, fmt.Sprintf("the label name %.100q is not valid UTF-8", n)
		case !utf8.Valid(v):
			return ReasonLabels, fmt.Sprintf("the value of label %.100q is not valid UTF-8", n)
		case l.MaxNameBytes > 0 && len(n) > l.MaxNameBytes:
			return ReasonNameTooLong, fmt.Sprintf("a label name has %d bytes, limits.label-name-bytes is %d", len(n), l.MaxNameBytes)
		case l.MaxValueBytes > 0 && len(v) > l.MaxValueBytes:
			return ReasonValueTooLong, fmt.Sprintf("the value of label %.100q has %d bytes, limits.label-value-bytes is %d", n, len(v), l.MaxValueBytes)
		}
	}
	return "", ""
}

// labels returns how many labels a series of a signal may have. Log streams may have one more: the
// rules for streams do not count service_name, which is mostly derived here and not sent. The receiver
// has already enforced those rules.
func (l *Limits) labels(s model.Signal) int {
	switch {
	case l.MaxLabels <= 0:
		return math.MaxInt
	case s == model.Logs:
		return l.MaxLabels + 1
	}
	return l.MaxLabels
}
