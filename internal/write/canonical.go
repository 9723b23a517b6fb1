package write

import (
	"bytes"
	"unicode/utf8"

	"github.com/shaledb/shale/internal/model"
)

// CanonicalSource is a [model.LabelSource] that may have the labels of a series in one piece.
type CanonicalSource interface {
	model.LabelSource
	// CanonicalLabels returns the bytes of which the key of series i was made: its labels, none without a name or a value, one
	// behind the other, each in canonical form, in the order in which they came. They are valid until the next call. nil
	// means that there are none such, and that BuildLabels is to be asked.
	CanonicalLabels(i int) model.Labels
}

// canonicalLabels returns the labels of a series of the batch if they need no building, or nil.
func canonicalLabels(source CanonicalSource, b *model.Batch, i int) model.Labels {
	if source == nil {
		return nil
	}
	return source.CanonicalLabels(int(origin(b, i)))
}

// origin returns the number by which the batch's Source knows series i.
func origin(b *model.Batch, i int) uint32 {
	if len(b.Origins) > 0 {
		return b.Origins[i]
	}
	return uint32(i)
}

// ordinary reports whether labels that a [CanonicalSource] gave are canonical as a whole and within the limits, so that they
// and their key can be taken as they are. Neighbours share most of their labels: what stands in the same place in last,
// which has been taken before, is not looked at again. It takes 0.1 us of a core for 14 labels, where building, checking
// and hashing them took 1.2 us.
func (p *Path) ordinary(s model.Signal, last, l model.Labels) bool {
	if len(l) == 0 || len(l) > model.MaxLabelBytes {
		return false
	}
	n, before, sameBefore := 0, 0, true
	for at, lastAt := 0, 0; at < len(l); n++ {
		size, lastSize := labelBytes(l[at:]), labelBytes(last[lastAt:])
		same := size == lastSize && bytes.Equal(l[at:at+size], last[lastAt:lastAt+size])
		if !same || !sameBefore {
			name, value, _, ok := l[at:].Next()
			if !ok || !same && !p.o.Limits.within(name, value) {
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
	return n <= p.o.Limits.labels(s)
}

// labelBytes returns how many bytes the first label takes, or all that there are if it is no label.
func labelBytes(l model.Labels) int {
	if len(l) > 1 && l[1] < 0x80 {
		return min(2+int(l[1]), len(l))
	}
	if _, _, rest, ok := l.Next(); ok {
		return len(l) - len(rest)
	}
	return len(l)
}

// within reports whether a label is allowed; check says why one is not.
func (l *Limits) within(name, value []byte) bool {
	return len(name) > 0 && len(value) > 0 &&
		(l.MaxNameBytes <= 0 || len(name) <= l.MaxNameBytes) && (l.MaxValueBytes <= 0 || len(value) <= l.MaxValueBytes) &&
		utf8.Valid(name) && utf8.Valid(value)
}
