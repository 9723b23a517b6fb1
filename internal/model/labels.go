package model

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// Labels is the label set of a series in canonical form: the labels sorted by name, names unique, no value
// empty, each as
//
//	0x0a, length of what follows, 0x0a, length and bytes of the name, 0x12, length and bytes of the value
//
// with lengths as minimal varints: the bytes of the field `labels` of a TimeSeries message of remote write
// 1.0, as its senders write them. Labels are sent, hashed and stored in this form, and compared and copied
// without parsing.
type Labels []byte

// MaxLabelBytes bounds the canonical form of one label set, which must fit a page of a part.
const MaxLabelBytes = 1 << 20

const (
	labelTag = 0x0a // field 1 of TimeSeries, length-delimited
	nameTag  = 0x0a // field 1 of Label
	valueTag = 0x12 // field 2 of Label
)

// appendLabel appends the canonical form of one label.
func appendLabel(dst, name, value []byte) []byte {
	dst = append(dst, labelTag)
	dst = binary.AppendUvarint(dst, uint64(1+varintLen(len(name))+len(name)+1+varintLen(len(value))+len(value)))
	dst = append(dst, nameTag)
	dst = binary.AppendUvarint(dst, uint64(len(name)))
	dst = append(dst, name...)
	dst = append(dst, valueTag)
	dst = binary.AppendUvarint(dst, uint64(len(value)))
	return append(dst, value...)
}

// AppendName appends the label set that has a name and no other label.
func AppendName(dst, name []byte) []byte { return appendLabel(dst, []byte(NameLabel), name) }

// LoneName returns the name of a label set that has no other label, or nil.
func (l Labels) LoneName() []byte {
	name, value, rest, ok := l.Next()
	if !ok || len(rest) > 0 || string(name) != NameLabel {
		return nil
	}
	return value
}

func varintLen(n int) int { return (bits.Len64(uint64(n)|1) + 6) / 7 }

// Next splits off the first label. It returns ok = false at the end and for bytes that are not canonical;
// [Labels.Check] distinguishes the two.
func (l Labels) Next() (name, value []byte, rest Labels, ok bool) {
	body, rest, ok := lengthDelimited(l, labelTag)
	if !ok {
		return nil, nil, nil, false
	}
	name, body, ok = lengthDelimited(body, nameTag)
	if !ok {
		return nil, nil, nil, false
	}
	value, body, ok = lengthDelimited(body, valueTag)
	if !ok || len(body) != 0 {
		return nil, nil, nil, false
	}
	return name, value, rest, true
}

func lengthDelimited(b []byte, tag byte) (field, rest []byte, ok bool) {
	if len(b) < 2 || b[0] != tag {
		return nil, nil, false
	}
	n, used := uint64(b[1]), 1
	if n >= 0x80 {
		if n, used = binary.Uvarint(b[1:]); used <= 0 {
			return nil, nil, false
		}
	}
	b = b[1+used:]
	if n > uint64(len(b)) {
		return nil, nil, false
	}
	return b[:n:n], b[n:], true
}

// Get returns the value of a label, or nil.
func (l Labels) Get(name string) []byte {
	// Only the wanted label is parsed. The others are skipped by their length.
	for len(name) < 0x80 {
		pair, rest, ok := lengthDelimited(l, labelTag)
		if !ok {
			return nil
		}
		if len(pair) > 2+len(name) && int(pair[1]) == len(name) && string(pair[2:2+len(name)]) == name {
			_, v, _, _ := l.Next()
			return v
		}
		l = rest
	}
	for n, v, rest, ok := l.Next(); ok; n, v, rest, ok = rest.Next() {
		if string(n) == name {
			return v
		}
	}
	return nil
}

// Len returns the number of labels.
func (l Labels) Len() int {
	n := 0
	for _, _, rest, ok := l.Next(); ok; _, _, rest, ok = rest.Next() {
		n++
	}
	return n
}

// Check returns an error of class [ErrCorrupt] unless the bytes are canonical.
func (l Labels) Check() error {
	var last []byte
	for rest := l; len(rest) > 0; {
		name, value, after, ok := rest.Next()
		switch {
		case !ok:
			return fmt.Errorf("%w: labels: malformed at byte %d", ErrCorrupt, len(l)-len(rest))
		case len(value) == 0:
			return fmt.Errorf("%w: labels: %q has no value", ErrCorrupt, name)
		case last != nil && bytes.Compare(last, name) >= 0:
			return fmt.Errorf("%w: labels: %q is out of order after %q", ErrCorrupt, name, last)
		}
		last, rest = name, after
	}
	return nil
}

// String returns the labels in the syntax of a PromQL selector.
func (l Labels) String() string {
	var sb strings.Builder
	sb.WriteByte('{')
	first := true
	for n, v, rest, ok := l.Next(); ok; n, v, rest, ok = rest.Next() {
		if !first {
			sb.WriteString(", ")
		}
		first = false
		fmt.Fprintf(&sb, "%s=%q", n, v)
	}
	sb.WriteByte('}')
	return sb.String()
}

// Key returns the key of a label set.
func (l Labels) Key(seed KeySeed, signal Signal) Key {
	b := KeyBuilder{Seed: seed, Signal: signal}
	for n, v, rest, ok := l.Next(); ok; n, v, rest, ok = rest.Next() {
		b.Label(n, v)
	}
	return b.Key(l)
}

// FirstSize returns the size of the first label in bytes, or the length of l if it does not begin with
// a valid label.
func (l Labels) FirstSize() int {
	if len(l) > 1 && l[1] < 0x80 {
		return min(2+int(l[1]), len(l))
	}
	if _, _, rest, ok := l.Next(); ok {
		return len(l) - len(rest)
	}
	return len(l)
}

// LabelsBuilder collects labels in any order and makes them canonical.
type LabelsBuilder struct {
	names, values [][]byte
	order         []int
}

// Reset empties the builder.
func (b *LabelsBuilder) Reset() { b.names, b.values = b.names[:0], b.values[:0] }

// LabelBuildBytes is the memory of a label in a LabelsBuilder that has room for it.
const LabelBuildBytes = 24 + 24 + 8

// Size makes room for n labels in all.
func (b *LabelsBuilder) Size(n int) {
	b.names, b.values = Sized(b.names, n), Sized(b.values, n)
}

// Add adds a label. The bytes must stay unchanged until Append. A label with an empty value does not exist,
// so it is ignored.
func (b *LabelsBuilder) Add(name, value []byte) {
	if len(value) == 0 {
		return
	}
	b.names, b.values = append(b.names, name), append(b.values, value)
}

// Len returns the number of labels.
func (b *LabelsBuilder) Len() int { return len(b.names) }

// At returns the i-th label that was added.
func (b *LabelsBuilder) At(i int) (name, value []byte) { return b.names[i], b.values[i] }

// Append appends the canonical form to dst. Two labels of one name are an error of class [ErrInvalid].
func (b *LabelsBuilder) Append(dst []byte) ([]byte, error) {
	b.order = Sized(b.order[:0], len(b.names))
	for i := range b.names {
		b.order = append(b.order, i)
	}
	slices.SortFunc(b.order, func(x, y int) int { return bytes.Compare(b.names[x], b.names[y]) })
	for i, at := range b.order {
		if i > 0 && bytes.Equal(b.names[at], b.names[b.order[i-1]]) {
			return dst, fmt.Errorf("%w: label name %q is not unique", ErrInvalid, b.names[at])
		}
		dst = appendLabel(dst, b.names[at], b.values[at])
	}
	return dst, nil
}

// LabelsOf returns canonical labels from alternating names and values. It is for tests and tools, and panics
// on duplicate names.
func LabelsOf(pairs ...string) Labels {
	var b LabelsBuilder
	for i := 0; i+1 < len(pairs); i += 2 {
		b.Add([]byte(pairs[i]), []byte(pairs[i+1]))
	}
	l, err := b.Append(nil)
	if err != nil {
		panic(err)
	}
	return l
}
