package samples

import (
	"encoding/binary"
	"slices"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
)

const (
	// MaxHistogramBytes bounds the canonical bytes of one histogram. A page must hold it.
	MaxHistogramBytes = 1 << 20
	// MaxSeriesBytes bounds the canonical bytes of the histograms that a series has in one page; what follows
	// goes on in the next. A column of a million equal numbers takes two bytes: without the bound a small
	// page could require any amount of memory. A bucket has at least one byte and a hostile one up to twelve,
	// which still fits a page.
	MaxSeriesBytes = 1 << 20
	// columnRows is the number of rows of one layout from which on every number has a column of its own. With
	// fewer the heads of the columns, five to ten bytes each, would outweigh them.
	columnRows = 8
)

// histogramCoder writes segments of series that have histograms. The rows are taken apart by layout, and each
// number of a layout (the zero count, the count of each bucket, the sum) is a column down the rows: a counter
// that grows slowly takes a few bits a row there. Two things keep integers small. Buckets are stored as
// counts, since a difference to the bucket before, as in the canonical form, changes whenever either does.
// And of the count only what it has beyond the zero count and the buckets is stored, which is nearly always
// 0.
type histogramCoder struct {
	layouts layoutDict
	h       model.Histogram

	rows    []histogramRow
	numbers []uint64 // of all rows, row after row
	refs    []int64
	order   []int32 // the rows by ref
	ints    []int64
	floats  []uint64
	piece   []byte
}

// histogramRow says where the numbers of a row begin, how many they are, and that none of them are integers.
type histogramRow struct {
	at, n  int
	floats bool
}

func (c *histogramCoder) reset() { c.layouts.reset() }

// append appends the segment of rows [i, j).
func (c *histogramCoder) append(dst []byte, r *model.Rows, i, j int, values *column.ValueCoder) ([]byte, error) {
	c.rows, c.numbers, c.refs, c.order = c.rows[:0], c.numbers[:0], c.refs[:0], c.order[:0]
	sorted := true
	for k := i; k < j; k++ {
		ref, err := c.add(r, k)
		if err != nil {
			return dst, err
		}
		sorted = sorted && (k == i || c.refs[k-i-1] <= ref)
		c.refs, c.order = append(c.refs, ref), append(c.order, int32(k-i))
	}
	if !sorted {
		slices.SortStableFunc(c.order, func(a, b int32) int { return int(c.refs[a] - c.refs[b]) })
	}
	dst = values.Ints.Append(dst, c.refs)
	for i := 0; i < len(c.order); {
		j := i + 1
		for j < len(c.order) && c.refs[c.order[j]] == c.refs[c.order[i]] {
			j++
		}
		dst = c.group(dst, c.order[i:j], values)
		i = j
	}
	return dst, nil
}

// add takes a row apart and returns 0 if it is a float, else 1 + the number of its layout.
func (c *histogramCoder) add(r *model.Rows, k int) (int64, error) {
	at := len(c.numbers)
	if r.Kind(k) == model.KindFloat {
		c.numbers = append(c.numbers, r.Values[k])
		c.rows = append(c.rows, histogramRow{at, 1, true})
		return 0, nil
	}
	h := &c.h
	if err := h.Parse(r.Blob(k)); err != nil {
		return 0, column.Invalid("time %d: %v", r.Times[k], err)
	}
	if why := checkHistogram(h); why != "" {
		return 0, column.Invalid("time %d: histogram: %s", r.Times[k], why)
	}
	c.numbers = append(c.numbers, h.ZeroCount)
	count := h.Count
	if h.Float {
		c.numbers = append(append(c.numbers, h.Positive...), h.Negative...)
	} else {
		count -= h.ZeroCount
		for _, buckets := range [2][]uint64{h.Positive, h.Negative} {
			bucket := uint64(0)
			for _, d := range buckets {
				bucket += d
				count -= bucket
				c.numbers = append(c.numbers, bucket)
			}
		}
	}
	c.numbers = append(c.numbers, count, h.Sum)
	c.rows = append(c.rows, histogramRow{at, len(c.numbers) - at, h.Float})
	return 1 + int64(c.layouts.id(h)), nil
}

// group appends the columns of rows of one layout, or of the floats.
func (c *histogramCoder) group(dst []byte, rows []int32, values *column.ValueCoder) []byte {
	n := c.rows[rows[0]].n
	ints := n - 1
	if c.rows[rows[0]].floats {
		ints = 0
	}
	if len(rows) >= columnRows {
		for col := range n {
			if col < ints {
				dst = values.Ints.Append(dst, c.column(c.ints[:0], rows, col))
			} else {
				dst = c.sized(dst, c.appendFloats(c.floats[:0], rows, col), values)
			}
		}
		return dst
	}
	if ints > 0 {
		dst = c.short(dst, rows, ints, values)
	}
	floats := c.floats[:0]
	for col := ints; col < n; col++ {
		floats = c.appendFloats(floats, rows, col)
	}
	return c.sized(dst, floats, values)
}

// short writes the integers of a few rows: those of the first, then, column by column, what the others have
// more than the row before.
func (c *histogramCoder) short(dst []byte, rows []int32, ints int, values *column.ValueCoder) []byte {
	c.ints = c.ints[:0]
	first := c.rows[rows[0]].at
	for col := range ints {
		c.ints = append(c.ints, int64(c.numbers[first+col]))
	}
	dst = values.Ints.Append(dst, c.ints)
	c.ints = c.ints[:0]
	for col := range ints {
		last := c.numbers[first+col]
		for _, k := range rows[1:] {
			x := c.numbers[c.rows[k].at+col]
			c.ints = append(c.ints, int64(x-last))
			last = x
		}
	}
	return values.Ints.Append(dst, c.ints)
}

func (c *histogramCoder) column(dst []int64, rows []int32, col int) []int64 {
	for _, k := range rows {
		dst = append(dst, int64(c.numbers[c.rows[k].at+col]))
	}
	c.ints = dst
	return dst
}

func (c *histogramCoder) appendFloats(dst []uint64, rows []int32, col int) []uint64 {
	for _, k := range rows {
		dst = append(dst, c.numbers[c.rows[k].at+col])
	}
	c.floats = dst
	return dst
}

// sized writes values with the length of their segment before them, since a segment does not tell its own.
func (c *histogramCoder) sized(dst []byte, floats []uint64, values *column.ValueCoder) []byte {
	c.piece = values.Append(c.piece[:0], floats)
	return append(binary.AppendUvarint(dst, uint64(len(c.piece))), c.piece...)
}
