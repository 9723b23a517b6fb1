package promwrite

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/dustin/go-humanize/english"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
	bodies "github.com/shaledb/shale/internal/write/body"
	"github.com/shaledb/shale/internal/write/wire"
)

// maxRefs bounds the references of one series, and with them their memory. A label set with more is too
// long, unless most of its labels are empty.
const maxRefs = 1 << 18

// symbolic is the state for a version 2 body, in addition to the rows.
type symbolic struct {
	// symbols has the position of each symbol in the body.
	symbols []span
	// series has the references of the current series. other has those of an exemplar or for an error
	// text.
	series, other references
	// labels are the labels of the current series, and before those of the previous one.
	labels, before expandedLabels
	// expanded counts the bytes of all labels after expansion. A small body can refer to a long symbol
	// many times; mostExpanded is the limit.
	expanded, mostExpanded int64
}

// references are pairs of a name and a value, each the index of a symbol.
type references struct {
	list    []uint32
	largest uint32
	tooMany bool
}

// expandedLabels are expanded labels.
type expandedLabels struct {
	// canonical is their canonical form if they are in order. ends has the end of each pair of refs in
	// it.
	canonical []byte
	refs      []uint32
	ends      []uint32
	// nameAt is the position of the metric name in the body, if named.
	named  bool
	nameAt span
}

func (y *symbolic) start(maxDecodedBytes int64) {
	y.symbols, y.expanded = y.symbols[:0], 0
	y.labels.refs, y.before.refs = y.labels.refs[:0], y.before.refs[:0]
	y.mostExpanded = maxDecodedBytes
	if maxDecodedBytes <= 0 || maxDecodedBytes > bodies.MaxDecoded {
		y.mostExpanded = bodies.MaxDecoded
	}
}

// memory returns the bytes that are kept between requests.
func (y *symbolic) memory() int {
	return cap(y.symbols)*symbolBytes + 4*cap(y.series.list) + 4*cap(y.other.list) + y.labels.memory() + y.before.memory()
}

func (g *expandedLabels) memory() int { return cap(g.canonical) + 4*(cap(g.refs)+cap(g.ends)) }

// index records the positions of the symbols in the body, whose fields may come in any order. It
// returns the offset of the first time series, or of the end.
func (w *walker) index() (first int, err error) {
	d, y := w.decoded, &w.symbolic
	first = len(d)
	for p := 0; p < len(d); {
		number, kind, next, err := wire.Field(d, p, len(d))
		if err != nil {
			return 0, err
		}
		switch number {
		case 4:
			begin, stop, err := wire.Message("a symbol", d, kind, next, len(d))
			if err != nil {
				return 0, err
			}
			if len(y.symbols) == 0 && begin != stop {
				return 0, &wire.Malformed{What: "a first symbol that is not empty", At: p}
			}
			if len(y.symbols) == cap(y.symbols) {
				if err := w.growSymbols(p); err != nil {
					return 0, err
				}
			}
			if y.symbols = append(y.symbols, spanOf(begin, stop)); len(y.symbols)&0xfff == 0 {
				if err := w.reserveRows(); err != nil {
					return 0, err
				}
			}
			p = stop
			continue
		case 5:
			first = min(first, p)
		case 1, 2, 3: // a version 1 message, whose content would silently be lost
			return 0, &wire.Malformed{What: "a remote write 1.0 message with the Content-Type of 2.0", At: p}
		}
		if p, err = wire.Skip(d, next, len(d), kind); err != nil {
			return 0, err
		}
	}
	if first < len(d) && len(y.symbols) == 0 {
		return 0, &wire.Malformed{What: "time series without symbols", At: first}
	}
	return first, nil
}

// growSymbols makes room for all further symbols, the first of which is at p, as grow does for rows.
func (w *walker) growSymbols(p int) error {
	y := &w.symbolic
	n := len(y.symbols) + symbolsFrom(w.decoded, p)
	if err := w.room.Reserve(w.room.Used() + w.other() + int64(n-len(y.symbols))*symbolBytes); err != nil {
		return err
	}
	y.symbols = model.Sized(y.symbols, n)
	return nil
}

// symbolsFrom counts the symbols in d from p on, up to the first malformed field.
func symbolsFrom(d []byte, p int) (n int) {
	for p < len(d) {
		number, kind, next, err := wire.Field(d, p, len(d))
		if err != nil {
			return n
		}
		if p, err = wire.Skip(d, next, len(d), kind); err != nil {
			return n
		}
		if number == 4 {
			n++
		}
	}
	return n
}

func (r *references) reset() { *r = references{list: r.list[:0]} }

// collect adds the packed references in [p, end) of b.
func (r *references) collect(b []byte, p, end int) error {
	list, largest := r.list, r.largest
	for p < end {
		v, next := uint64(b[p]), p+1
		switch {
		case v < 0x80:
		case next < end && b[next] < 0x80: // two bytes, the most common size
			v, next = v&0x7f|uint64(b[next])<<7, next+1
		default:
			if v, next = wire.Varint(b, p, end); next < 0 {
				return &wire.Malformed{What: "a cut off or oversized reference", At: p}
			}
		}
		p = next
		if len(list) == maxRefs {
			r.tooMany = true
			continue
		}
		list = append(list, uint32(v))
		largest = max(largest, uint32(v))
	}
	r.list, r.largest = list, largest
	return nil
}

// check returns the reason why the references are not valid labels and an explanation, or "".
func (r *references) check(symbols int) (reason string, why func() string) {
	switch n := len(r.list); {
	case r.tooMany:
		return write.ReasonTooManyLabels, func() string { return fmt.Sprintf("more than %d references", maxRefs) }
	case n%2 != 0:
		return write.ReasonReference, func() string {
			return fmt.Sprintf("expected pairs of references to name and value, got an odd number: %d", n)
		}
	case n > 0 && int64(r.largest) >= int64(symbols):
		return write.ReasonReference, outside(r.largest, symbols)
	}
	return "", nil
}

func outside(ref uint32, symbols int) func() string {
	return func() string {
		return fmt.Sprintf("the reference %d is out of range: the request has %d %s", ref, symbols, english.PluralWord(int(symbols), "symbol", ""))
	}
}

// expand expands the checked references to labels, in their order, in y.labels, and passes the labels
// to the key builder. It returns a reason if they are too long.
//
// Consecutive series mostly differ in a few values. Labels that equal those of the previous series at
// the same position are copied in one piece.
func (w *walker) expand() (reason string, why func() string) {
	d, y := w.decoded, &w.symbolic
	refs := y.series.list
	y.labels, y.before = y.before, y.labels
	g, old := &y.labels, &y.before
	out, ends := g.canonical[:0], g.ends[:0]
	w.keys.Reset()
	g.named, g.refs = false, g.refs[:0]
	for i := 0; i < len(refs); {
		same := sameRefs(refs, old.refs, i)
		end := max(same, i+2)
		for j := i; j < end; j += 2 {
			n, v := y.symbols[refs[j]], y.symbols[refs[j+1]]
			if v.size == 0 {
				continue
			}
			name := d[n.at : n.at+n.size]
			w.keys.Label(name, d[v.at:v.at+v.size])
			if len(name) == len(model.NameLabel) && string(name) == model.NameLabel {
				g.named, g.nameAt = true, v
			}
		}
		if same > i {
			begin, moved := old.begin(i/2), uint32(len(out))
			out = append(out, old.canonical[begin:old.ends[same/2-1]]...)
			for _, e := range old.ends[i/2 : same/2] {
				ends = append(ends, e-begin+moved)
			}
		} else {
			n, v := y.symbols[refs[i]], y.symbols[refs[i+1]]
			// Labels that are too long are not expanded, and no other series is compared with them.
			if n.size > model.MaxLabelBytes || v.size > model.MaxLabelBytes || len(out) > model.MaxLabelBytes {
				g.canonical, g.ends, g.refs = out, ends, g.refs[:0]
				y.expanded += int64(len(out))
				return write.ReasonLabelsTooLong, func() string { return fmt.Sprintf("more than %d bytes of labels", model.MaxLabelBytes) }
			}
			if v.size != 0 {
				out = appendLabel(out, n.slice(d), v.slice(d))
			}
			ends = append(ends, uint32(len(out)))
		}
		i = end
	}
	g.canonical, g.ends, g.refs = out, ends, append(g.refs, refs...)
	y.expanded += int64(len(out))
	return "", nil
}

// begin returns the offset of a pair in the canonical form.
func (g *expandedLabels) begin(pair int) uint32 {
	if pair == 0 {
		return 0
	}
	return g.ends[pair-1]
}

// sameRefs returns the end of the equal pairs of a and b that begin at i, or i if there are none.
func sameRefs(a, b []uint32, i int) int {
	most := min(len(a), len(b))
	for i+1 < most && a[i] == b[i] && a[i+1] == b[i+1] {
		i += 2
	}
	return i
}

// appendLabel appends a label in canonical form, see [model.Labels].
func appendLabel(dst, name, value []byte) []byte {
	n, v, at := len(name), len(value), len(dst)
	if n+v > 0x7f-4 {
		return appendLongLabel(dst, name, value)
	}
	dst = slices.Grow(dst, n+v+6)[:at+n+v+6]
	b := dst[at:]
	b[0], b[1], b[2], b[3] = 0x0a, byte(n+v+4), 0x0a, byte(n)
	copy(b[4:], name)
	b[4+n], b[5+n] = 0x12, byte(v)
	copy(b[6+n:], value)
	return dst
}

func appendLongLabel(dst, name, value []byte) []byte {
	dst = append(dst, 0x0a)
	dst = binary.AppendUvarint(dst, uint64(2+protowire.SizeBytes(len(name))+protowire.SizeBytes(len(value))))
	dst = append(dst, 0x0a)
	dst = binary.AppendUvarint(dst, uint64(len(name)))
	dst = append(append(dst, name...), 0x12)
	dst = binary.AppendUvarint(dst, uint64(len(value)))
	return append(dst, value...)
}

// canonicalReferenced expands the labels whose packed references are at the given span. It returns nil
// if that fails.
func (w *walker) canonicalReferenced(at span) model.Labels {
	y := &w.symbolic
	packed := w.bytes(at)
	y.series.reset()
	if y.series.collect(packed, 0, len(packed)) != nil {
		return nil
	}
	if reason, _ := y.series.check(len(y.symbols)); reason != "" {
		return nil
	}
	if reason, _ := w.expand(); reason != "" {
		return nil
	}
	return model.Labels(y.labels.canonical)
}

// buildReferenced adds the labels whose packed references are at the given span, and reports whether
// they are valid.
func (w *walker) buildReferenced(at span, b *model.LabelsBuilder) bool {
	y := &w.symbolic
	packed, refs := w.bytes(at), &y.other
	refs.reset()
	if refs.collect(packed, 0, len(packed)) != nil {
		return false
	}
	if reason, _ := refs.check(len(y.symbols)); reason != "" {
		return false
	}
	for i := 0; i+1 < len(refs.list); i += 2 {
		b.Add(y.symbols[refs.list[i]].slice(w.decoded), y.symbols[refs.list[i+1]].slice(w.decoded))
	}
	return true
}

// describeReferences formats invalid references for an error text.
func (w *walker) describeReferences(at span) string {
	const few = 20
	packed, refs := w.bytes(at), &w.symbolic.other
	refs.reset()
	if refs.collect(packed, 0, len(packed)) != nil || len(refs.list) > few {
		return fmt.Sprintf("references %d...", refs.list[:min(len(refs.list), few)])
	}
	return fmt.Sprintf("references %d", refs.list)
}
