package samples

import (
	"encoding/binary"
	"slices"

	"github.com/shaledb/shale/internal/store/part/column"
)

// timeDict holds the distinct sequences of times of a page, of two rows and more. Series that are scraped
// together share a sequence, so their times cost one reference each. A sequence is a column of integers:
// multiples of a unit since an origin, where the unit is the greatest that divides all times of the page.
// So a regular sequence takes a few bytes, and an irregular one does not store the zeros of its
// nanoseconds.
type timeDict struct {
	raw  []int64
	ends []int
	lens []int64 // encoded
	buf  []byte
	tmp  []int64
	refs []int64 // by series of two rows and more
	last int
	ids  map[sequence]int

	// wholes says of each sequence of which one it is a part, and from where on.
	wholes  []int32
	places  []int64
	order   []int32
	firsts  map[int64]int32
	lasts   map[int64]int32
	numbers []int64

	distinct map[int64]int64
	dict     []int64
	dictRefs []int64
	scratch  []byte
}

// sequence is what two equal sequences share; two that share it are still compared.
type sequence struct {
	first, mid, last int64
	rows             int
}

func (d *timeDict) reset() {
	d.raw, d.ends, d.lens, d.buf, d.refs, d.last = d.raw[:0], d.ends[:0], d.lens[:0], d.buf[:0], d.refs[:0], 0
	clear(d.ids)
}

func (d *timeDict) list(id int) []int64 {
	begin := 0
	if id > 0 {
		begin = d.ends[id-1]
	}
	return d.raw[begin:d.ends[id]]
}

// add refers to the sequence, which it adds if it is new.
func (d *timeDict) add(times []int64) {
	if d.last < len(d.ends) && slices.Equal(d.list(d.last), times) {
		d.refs = append(d.refs, int64(d.last))
		return
	}
	n := len(times)
	k := sequence{times[0], times[n/2], times[n-1], n}
	if id, ok := d.ids[k]; ok && slices.Equal(d.list(id), times) {
		d.last = id
		d.refs = append(d.refs, int64(id))
		return
	}
	if d.ids == nil {
		d.ids = make(map[sequence]int)
	}
	d.last = len(d.ends)
	d.ids[k] = d.last
	d.refs = append(d.refs, int64(d.last))
	d.raw = append(d.raw, times...)
	d.ends = append(d.ends, len(d.raw))
}

// size estimates the encoded length.
func (d *timeDict) size() int { return 10*len(d.ends) + len(d.raw)/2 + len(d.refs)/4 }

// unit returns the least time and the greatest common divisor of the distances of all times from it.
func (d *timeDict) unit() (origin int64, unit uint64) {
	origin = slices.Min(d.raw)
	for _, t := range d.raw {
		if x := uint64(t - origin); unit == 0 || x%unit != 0 {
			if unit = column.GCD(unit, x); unit == 1 {
				break
			}
		}
	}
	// No time differs from the origin only if there is no sequence of two.
	return origin, max(unit, 1)
}

// join finds the sequences that are the beginning or the end of another, longer one, and returns how many are
// not.
func (d *timeDict) join() int {
	n := len(d.ends)
	d.wholes, d.places, d.order = column.Grow(d.wholes[:0], n), column.Grow(d.places[:0], n), column.Grow(d.order[:0], n)
	if d.firsts == nil {
		d.firsts, d.lasts = make(map[int64]int32), make(map[int64]int32)
	}
	clear(d.firsts)
	clear(d.lasts)
	for i := range d.order {
		d.order[i] = int32(i)
	}
	slices.SortStableFunc(d.order, func(a, b int32) int { return len(d.list(int(b))) - len(d.list(int(a))) })
	wholes := 0
	for _, id := range d.order {
		times := d.list(int(id))
		k := len(times)
		d.wholes[id], d.places[id] = id, 0
		first, begun := d.firsts[times[0]]
		last, ended := d.lasts[times[k-1]]
		switch {
		case begun && slices.Equal(d.list(int(first))[:k], times):
			d.wholes[id] = first
			continue
		case ended:
			whole := d.list(int(last))
			if from := len(whole) - k; slices.Equal(whole[from:], times) {
				d.wholes[id], d.places[id] = last, int64(from)
				continue
			}
		}
		if wholes++; !begun {
			d.firsts[times[0]] = id
		}
		if !ended {
			d.lasts[times[k-1]] = id
		}
	}
	return wholes
}

// append writes the dictionary and the references.
func (d *timeDict) append(dst []byte, ints *column.IntCoder) []byte {
	if len(d.refs) == 0 {
		return dst
	}
	origin, unit := d.unit()
	dst = binary.AppendUvarint(dst, uint64(d.join()))
	dst = binary.AppendVarint(dst, origin)
	dst = binary.AppendUvarint(dst, unit)
	d.numbers = column.Grow(d.numbers[:0], len(d.ends))
	rows := d.dictRefs[:0]
	for id := range d.ends {
		if d.wholes[id] != int32(id) {
			continue
		}
		d.numbers[id] = int64(len(rows))
		times := d.list(id)
		rows = append(rows, int64(len(times)))
		d.tmp = d.tmp[:0]
		for _, t := range times {
			d.tmp = append(d.tmp, int64(uint64(t-origin)/unit))
		}
		before := len(d.buf)
		d.buf = ints.Append(d.buf, d.tmp)
		d.lens = append(d.lens, int64(len(d.buf)-before))
	}
	d.dictRefs = rows
	dst = ints.Append(dst, rows)
	dst = ints.Append(dst, d.lens)
	d.tmp = d.tmp[:0]
	for i, id := range d.refs {
		d.refs[i] = d.numbers[d.wholes[id]]
		d.tmp = append(d.tmp, d.places[id])
	}
	dst = ints.Append(dst, d.refs)
	return append(ints.Append(dst, d.tmp), d.buf...)
}

// dictionary returns the distinct times, sorted, and for each time its place among them; nil if more than a
// quarter of the times are distinct.
func (d *timeDict) dictionary(times []int64) (dict, refs []int64) {
	if d.distinct == nil {
		d.distinct = make(map[int64]int64)
	}
	clear(d.distinct)
	d.dict, d.dictRefs = d.dict[:0], d.dictRefs[:0]
	for i, t := range times {
		if i > 0 && t == times[i-1] {
			continue
		}
		if _, ok := d.distinct[t]; !ok {
			if len(d.dict) >= len(times)/4 {
				return nil, nil
			}
			d.distinct[t] = 0
			d.dict = append(d.dict, t)
		}
	}
	slices.Sort(d.dict)
	for i, t := range d.dict {
		d.distinct[t] = int64(i)
	}
	ref := int64(0)
	for i, t := range times {
		if i == 0 || t != times[i-1] {
			ref = d.distinct[t]
		}
		d.dictRefs = append(d.dictRefs, ref)
	}
	return d.dict, d.dictRefs
}
