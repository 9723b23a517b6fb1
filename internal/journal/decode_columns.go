package journal

import (
	"encoding/binary"
	"math"

	"github.com/shaledb/shale/internal/model"
)

// mayHold reports whether rows of a family may have a kind.
func mayHold(f model.Family, k model.Kind) bool {
	if f == model.Exemplars {
		return k == model.KindExemplar
	}
	return k == model.KindFloat || k == model.KindHistogram
}

// rows reads the rows of one family.
func (d *decoder) rows(f model.Family) {
	c := d.b.Columns(f)
	rows, single := len(d.b.Keys), false
	switch kind := d.take(1); {
	case d.err != nil:
		return
	case kind[0] == countsOne:
		single = true
		for i := range d.b.Keys {
			c.Ends = append(c.Ends, uint32(i)+1)
		}
	case kind[0] == counts:
		rows = d.counts(c)
	case kind[0] == countsFew:
		rows = d.countsFew(c)
	default:
		d.fail("unknown encoding %d of row counts", kind[0])
		return
	}
	c.Times = d.times(c.Times, rows, single, false)
	c.Starts = d.times(c.Starts, rows, single, true)
	d.values(&c.Rows, rows, f)
}

// counts reads how many rows each series has and returns their sum, which is at most the number of bytes
// left: every row takes at least one byte in the column of times.
func (d *decoder) counts(c *model.Columns) int {
	total := uint64(0)
	for range d.b.Keys {
		if total = d.plus(total, d.uvarint()); d.err != nil {
			return 0
		}
		c.Ends = append(c.Ends, uint32(total))
	}
	return int(total)
}

// countsFew reads the numbers of rows of only those series that have any.
func (d *decoder) countsFew(c *model.Columns) int {
	total := uint64(0)
	for range d.length() { // each takes at least a byte
		skip, n := d.uvarint(), d.uvarint()
		if n == 0 || skip >= uint64(len(d.b.Keys)-len(c.Ends)) {
			d.fail("expected a series below %d in the row counts", len(d.b.Keys))
		}
		if d.err != nil {
			return 0
		}
		for range skip {
			c.Ends = append(c.Ends, uint32(total))
		}
		if total = d.plus(total, n); d.err != nil {
			return 0
		}
		c.Ends = append(c.Ends, uint32(total))
	}
	for len(c.Ends) < len(d.b.Keys) {
		c.Ends = append(c.Ends, uint32(total))
	}
	return int(total)
}

// plus adds n rows, each of which takes at least a byte.
func (d *decoder) plus(total, n uint64) uint64 {
	total += n
	if n > uint64(len(d.in)) || total > uint64(len(d.in)) || total > math.MaxUint32 {
		d.fail("%d rows do not fit in %d bytes", total, len(d.in))
	}
	return total
}

func (d *decoder) times(dst []int64, rows int, single, mayLack bool) []int64 {
	kind := d.take(1)
	if d.err != nil {
		return dst
	}
	switch {
	case kind[0] == columnAbsent && (mayLack || rows == 0):
	case kind[0] == columnEqual && single:
		t := int64(d.uint64())
		for range rows {
			dst = append(dst, t)
		}
	case kind[0] == columnDeltas:
		last := int64(0)
		for range rows {
			u := d.uvarint()
			if d.err != nil {
				return dst
			}
			last += int64(u>>1) ^ -int64(u&1)
			dst = append(dst, last)
		}
	default:
		d.fail("unknown encoding %d of times", kind[0])
	}
	return dst
}

func (d *decoder) values(r *model.Rows, rows int, f model.Family) {
	kind := d.take(1)
	switch {
	case d.err != nil:
	case (kind[0] == columnLines) != (f == model.Text):
		d.fail("encoding %d of values is not allowed in family %d", kind[0], f)
	case kind[0] == columnLines:
		d.lines(r, rows)
	case kind[0] == columnKinds:
		if d.kinds(r, rows, f); d.err == nil {
			d.blobs(r)
		}
	case !mayHold(f, model.KindFloat):
		d.fail("floats are not allowed in this family")
	case kind[0] == columnEqual:
		v := d.uint64()
		for range rows {
			r.Values = append(r.Values, v)
		}
	case kind[0] == columnRaw:
		// rows is at most the number of bytes of the record, so 8*rows does not overflow.
		for raw := d.take(8 * rows); len(raw) > 0; raw = raw[8:] {
			r.Values = append(r.Values, binary.LittleEndian.Uint64(raw))
		}
	default:
		d.fail("unknown encoding %d of values", kind[0])
	}
}

// kinds reads the kinds of rows that are not all floats.
func (d *decoder) kinds(r *model.Rows, rows int, f model.Family) {
	onlyFloats := true
	add := func(b byte) bool {
		k := model.Kind(b)
		if !mayHold(f, k) {
			d.fail("value has kind %d, which its family does not allow", b)
			return false
		}
		onlyFloats = onlyFloats && k == model.KindFloat
		r.Kinds = append(r.Kinds, k)
		return true
	}
	switch head := d.take(1); {
	case d.err != nil:
	case head[0] == columnEqual:
		k := d.take(1)
		for i := 0; i < rows && d.err == nil && add(k[0]); i++ {
		}
	case head[0] == columnRaw:
		for _, k := range d.take(rows) {
			if !add(k) {
				return
			}
		}
	default:
		d.fail("unknown encoding %d of kinds", head[0])
	}
	if d.err == nil && onlyFloats {
		d.fail("column of kinds, but all values are floats")
	}
}

// blobs reads the values of rows whose kinds have been read.
func (d *decoder) blobs(r *model.Rows) {
	for _, k := range r.Kinds {
		if k == model.KindFloat {
			r.Values = append(r.Values, d.uint64())
			continue
		}
		begin := len(r.Bytes)
		r.Bytes = append(r.Bytes, d.take(d.length())...)
		r.Values = append(r.Values, uint64(begin)<<32|uint64(len(r.Bytes)-begin))
		if d.err != nil {
			return
		}
	}
}
