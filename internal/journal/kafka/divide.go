package kafka

import (
	"github.com/shaledb/shale/internal/journal"
	"github.com/shaledb/shale/internal/model"
)

// fitting appends the records of a part: one, or several if the topic does not take it whole. Each stands
// alone, with the labels of its series, and rows keep their order. Only a single row may still be too large.
func fitting(parts []part, partition int32, b *model.Batch, limit int) []part {
	record := journal.EncodeBatch(nil, b)
	rows := rowsOf(b)
	if len(record) <= limit || rows < 2 {
		return append(parts, part{partition, record})
	}
	var first, second model.Batch
	halve(b, rows/2, &first, &second)
	return fitting(fitting(parts, partition, &first, limit), partition, &second, limit)
}

// rowsOf returns the rows of a batch, where a series without rows counts as one.
func rowsOf(b *model.Batch) (n int) {
	for i := range b.Keys {
		n += rowsOfSeries(b, i)
	}
	return n
}

func rowsOfSeries(b *model.Batch, i int) (n int) {
	for _, f := range model.Families() {
		c := b.Columns(f)
		n += int(c.End(i) - c.Begin(i))
	}
	return max(n, 1)
}

// halve copies the rows before a number to first, and the others to second.
func halve(b *model.Batch, number int, first, second *model.Batch) {
	at, labels := 0, 0
	for i := range b.Keys {
		from := labels
		for ; labels < b.Labels.Len() && b.Labels.Series[labels] == uint32(i); labels++ {
		}
		n := rowsOfSeries(b, i)
		cut := min(max(number-at, 0), n)
		if cut > 0 {
			copySeries(first, b, i, 0, cut, from, labels)
		}
		if cut < n {
			copySeries(second, b, i, cut, n, from, labels)
		}
		at += n
	}
}

// copySeries copies the rows [from, to) of series i, counted through all families, and its labels.
func copySeries(dst, b *model.Batch, i, from, to, labels, labelsEnd int) {
	dst.Tenant, dst.Signal = b.Tenant, b.Signal
	for _, f := range model.Families() {
		c := b.Columns(f)
		begin, n := int(c.Begin(i)), int(c.End(i)-c.Begin(i))
		if lo, hi := max(from, 0), min(to, n); lo < hi {
			dst.Columns(f).AppendRows(&c.Rows, begin+lo, begin+hi)
		}
		from, to = from-n, to-n
	}
	for l := labels; l < labelsEnd; l++ {
		dst.Labels.Append(uint32(len(dst.Keys)), b.Labels.At(l))
	}
	dst.EndSeries(b.Keys[i])
}
