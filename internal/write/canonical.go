package write

import (
	"bytes"
	"unicode/utf8"

	"github.com/shaledb/shale/internal/model"
)

// CanonicalSource is a [model.LabelSource] that may already hold the labels of a series in canonical
// form.
type CanonicalSource interface {
	model.LabelSource
	// CanonicalLabels returns the bytes from which the key of series i was computed: its labels, each
	// in canonical form, concatenated in the order in which they were sent. No name or value is empty.
	// The bytes are valid until the next call. It returns nil if there are no such bytes; the caller
	// then uses BuildLabels.
	CanonicalLabels(i int) model.Labels
}

// canonicalLabels returns the labels of series i if its source holds them in canonical form, or nil.
func canonicalLabels(source CanonicalSource, b *model.Batch, i int) model.Labels {
	if source == nil {
		return nil
	}
	return source.CanonicalLabels(int(origin(b, i)))
}

// origin returns the index by which the batch's Source knows series i.
func origin(b *model.Batch, i int) uint32 {
	if len(b.Origins) > 0 {
		return b.Origins[i]
	}
	return uint32(i)
}

// usableAsIs reports whether the labels of a [CanonicalSource] are sorted, valid and within the limits,
// so that they and their key need no rebuilding. Neighbouring series share most of their labels: a
// label that equals the one at the same position of last, which has been checked, is not checked again.
func (limits *Limits) usableAsIs(s model.Signal, last, l model.Labels) bool {
	if len(l) == 0 || len(l) > model.MaxLabelBytes {
		return false
	}
	n, before, sameBefore := 0, 0, true
	for at, lastAt := 0, 0; at < len(l); n++ {
		size, lastSize := l[at:].FirstSize(), last[lastAt:].FirstSize()
		same := size == lastSize && bytes.Equal(l[at:at+size], last[lastAt:lastAt+size])
		if !same || !sameBefore {
			name, value, _, ok := l[at:].Next()
			if !ok || !same && !limits.within(name, value) {
				return false
			}
			if at > 0 {
				if prior, _, _, _ := l[before:].Next(); bytes.Compare(prior, name) >= 0 {
					return false
				}
			}
		}
		before, sameBefore = at, same
		at, lastAt = at+size, lastAt+lastSize
	}
	return n <= limits.labels(s)
}

// within reports whether a label is allowed; check says why it is not.
func (l *Limits) within(name, value []byte) bool {
	return len(name) > 0 && len(value) > 0 &&
		(l.MaxNameBytes <= 0 || len(name) <= l.MaxNameBytes) && (l.MaxValueBytes <= 0 || len(value) <= l.MaxValueBytes) &&
		utf8.Valid(name) && utf8.Valid(value)
}
