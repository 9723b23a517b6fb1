package samples

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
)

// histogramDecoder reads segments of series that have histograms. It keeps the memory that it needs between
// segments.
type histogramDecoder struct {
	layouts []layout

	refs  []int64
	order []int32
	rows  []decodedRow
	// numbers holds groups of rows of one layout, in a group column after column.
	numbers []uint64
	ints    []int64
	h       model.Histogram
}

// decodedRow says where the first number of a row is, and how far from it the next.
type decodedRow struct{ at, stride int }

// decoders are kept for all pages: a query over a year reads a few hundred rows of each of hundreds of
// blocks.
var decoders = sync.Pool{New: func() any { return new(histogramDecoder) }}

// mostNumbers is the most numbers that a kept decoder has room for.
const mostNumbers = 1 << 17

func borrowDecoder(layouts []layout) *histogramDecoder {
	d := decoders.Get().(*histogramDecoder)
	d.layouts = layouts
	return d
}

func (d *histogramDecoder) giveBack() {
	d.layouts, d.h = nil, model.Histogram{Positive: d.h.Positive, Negative: d.h.Negative}
	if max(cap(d.numbers), cap(d.rows), cap(d.refs), cap(d.h.Positive), cap(d.h.Negative)) <= mostNumbers {
		decoders.Put(d)
	}
}

// decode reads a segment of n rows, which takes all of b.
func (d *histogramDecoder) decode(b []byte, n int, values *column.ValueDecoder) error {
	s := column.Scan{Rest: b}
	d.refs = values.Ints.Append(d.refs[:0], &s, n)
	if s.Bad {
		return s.Err("histograms")
	}
	d.order, d.rows, d.numbers = d.order[:0], column.Grow(d.rows[:0], n), d.numbers[:0]
	sorted := true
	least := uint64(0)
	for i, ref := range d.refs {
		switch {
		case ref < 0 || ref > int64(len(d.layouts)):
			return column.Corrupt("histograms: a row has a layout that is not there")
		case ref > 0:
			if least += d.layouts[ref-1].least; least > MaxSeriesBytes {
				return column.Corrupt("histograms: more than %d bytes in one series and page", MaxSeriesBytes)
			}
		}
		sorted = sorted && (i == 0 || d.refs[i-1] <= ref)
		d.order = append(d.order, int32(i))
	}
	if !sorted {
		slices.SortStableFunc(d.order, func(a, b int32) int { return int(d.refs[a] - d.refs[b]) })
	}
	for i := 0; i < n; {
		j := i + 1
		for j < n && d.refs[d.order[j]] == d.refs[d.order[i]] {
			j++
		}
		if err := d.group(&s, d.order[i:j], values); err != nil {
			return err
		}
		i = j
	}
	return s.End("histograms")
}

// group reads the columns of rows of one layout, or of the floats.
func (d *histogramDecoder) group(s *column.Scan, rows []int32, values *column.ValueDecoder) error {
	cols, ints := 1, 0
	if ref := d.refs[rows[0]]; ref > 0 {
		l := &d.layouts[ref-1]
		if cols = l.numbers(); !l.h.Float {
			ints = cols - 1
		}
	}
	at, n := len(d.numbers), len(rows)
	for i, k := range rows {
		d.rows[k] = decodedRow{at + i, n}
	}
	var err error
	if n >= columnRows {
		for col := 0; col < cols && err == nil; col++ {
			if col >= ints {
				d.numbers, err = d.sized(s, n, values)
				continue
			}
			d.ints = values.Ints.Append(d.ints[:0], s, n)
			for _, x := range d.ints {
				d.numbers = append(d.numbers, uint64(x))
			}
			err = s.Err("histograms")
		}
		return err
	}
	if ints > 0 {
		if err := d.short(s, n, ints, values); err != nil {
			return err
		}
	}
	d.numbers, err = d.sized(s, n*(cols-ints), values)
	return err
}

// short reads the integers of a few rows.
func (d *histogramDecoder) short(s *column.Scan, n, ints int, values *column.ValueDecoder) error {
	d.ints = values.Ints.Append(d.ints[:0], s, ints)
	d.ints = values.Ints.Append(d.ints, s, ints*(n-1))
	if s.Bad {
		return s.Err("histograms")
	}
	more := d.ints[ints:]
	for _, x := range d.ints[:ints] {
		d.numbers = append(d.numbers, uint64(x))
		for _, y := range more[:n-1] {
			x += y
			d.numbers = append(d.numbers, uint64(x))
		}
		more = more[n-1:]
	}
	return nil
}

func (d *histogramDecoder) sized(s *column.Scan, n int, values *column.ValueDecoder) ([]uint64, error) {
	b := s.Bytes()
	if s.Bad {
		return d.numbers, s.Err("histograms")
	}
	return values.Append(d.numbers, b, n)
}

// appendRow appends row k of the segment.
func (d *histogramDecoder) appendRow(k int, t, start int64, dst *model.Rows) error {
	at, stride := d.rows[k].at, d.rows[k].stride
	if d.refs[k] == 0 {
		dst.Append(t, d.numbers[at], start)
		return nil
	}
	l := &d.layouts[d.refs[k]-1]
	if len(l.flat.flags) > 0 {
		begin := len(dst.Bytes)
		dst.Bytes = l.appendFlat(dst.Bytes, d.numbers[at:], stride)
		return endBlob(dst, t, model.KindHistogram, begin, start)
	}
	h := &d.h
	positive, negative := h.Positive[:0], h.Negative[:0]
	*h = l.h
	next := func() uint64 {
		x := d.numbers[at]
		at += stride
		return x
	}
	h.ZeroCount = next()
	sum := h.ZeroCount
	buckets := func(dst []uint64, n int) []uint64 {
		last := uint64(0)
		for range n {
			x := next()
			if h.Float {
				dst = append(dst, x)
				continue
			}
			sum += x
			dst = append(dst, x-last)
			last = x
		}
		return dst
	}
	h.Positive, h.Negative = buckets(positive, l.positive), buckets(negative, l.negative)
	if h.Count = next(); !h.Float {
		h.Count += sum
	}
	h.Sum = next()
	begin := len(dst.Bytes)
	dst.Bytes = model.AppendHistogram(dst.Bytes, h)
	return endBlob(dst, t, model.KindHistogram, begin, start)
}

// appendFlat appends the bytes of a histogram whose numbers are a stride apart.
func (l *layout) appendFlat(dst []byte, numbers []uint64, stride int) []byte {
	f := &l.flat
	begin, size := len(dst), 27+len(f.schema)+len(f.spans)+8*l.positive
	dst = slices.Grow(dst, size)[:begin+size]
	b := dst[begin:]
	put := func(at, column int) { binary.LittleEndian.PutUint64(b[at:], numbers[column*stride]) }
	b[0] = f.flags[0]
	put(1, l.positive+2)
	at := 9 + copy(b[9:], f.schema)
	put(at, l.positive+1)
	put(at+8, 0)
	at += 16
	at += copy(b[at:], f.spans)
	for i := range l.positive {
		put(at+8*i, i+1)
	}
	b[size-2], b[size-1] = 0, 0
	return dst
}
