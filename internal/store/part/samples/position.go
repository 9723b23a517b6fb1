package samples

import (
	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
)

// columnPos counts, before a rank: series of one row, of more; rows of short series; long series.
type columnPos struct {
	single, multi, short, long uint32
}

// isShort reports whether the values of the i-th rank of the page are in the page-wide column.
func (d *sampleDir) isShort(i int) bool {
	return d.counts[i] < shortRows && (len(d.mixed) == 0 || d.mixed[i] == 0)
}

// count sums up the rows before every beforeRanks ranks, and all rows. A query for one series of a page needs
// no more about most others, so a sum for each rank would be wasted: see BenchmarkRead of package part.
func (d *sampleDir) count() error {
	var pos columnPos
	d.before, d.rows, d.pos, d.passed = d.before[:0], 0, pos, 0
	for i := 0; i < len(d.counts); i += beforeRanks {
		d.before = append(d.before, pos)
		end := min(i+beforeRanks, len(d.counts))
		if len(d.mixed) == 0 && allOnes(d.counts[i:end]) {
			d.rows += end - i
			pos.single, pos.short = pos.single+uint32(end-i), pos.short+uint32(end-i)
			continue
		}
		for k, n := range d.counts[i:end] {
			if uint64(n) > file.MaxPageRows {
				return column.Corrupt("page of samples: a series of %d rows", n)
			}
			if len(d.mixed) > 0 && (uint64(d.mixed[i+k]) > 1 || n == 0 && d.mixed[i+k] != 0) {
				return column.Corrupt("page of samples: a series of kind %d with %d rows", d.mixed[i+k], n)
			}
			d.rows += int(n)
		}
		d.pass(&pos, i, end)
	}
	if d.rows > file.MaxPageRows || d.rows == 0 {
		return column.Corrupt("page of samples: %d rows", d.rows)
	}
	d.end = pos
	return nil
}

func allOnes(counts []int64) bool {
	differ := int64(0)
	for _, n := range counts {
		differ |= n ^ 1
	}
	return differ == 0
}

// beforeRanks is the number of ranks that share one sum.
const beforeRanks = 64

// pass moves pos over the ranks [from, to).
func (d *sampleDir) pass(pos *columnPos, from, to int) {
	mixed := len(d.mixed) > 0
	for i := from; i < to; i++ {
		n := uint32(d.counts[i])
		switch {
		case n == 1:
			pos.single++
		case n > 1:
			pos.multi++
		}
		if n < shortRows && (!mixed || d.mixed[i] == 0) {
			pos.short += n
		} else {
			pos.long++
		}
	}
}

// posOf returns how much of each column lies before a rank. It goes on from the rank that was asked for last.
func (d *sampleDir) posOf(i int) columnPos {
	if i < d.passed || i/beforeRanks != d.passed/beforeRanks {
		d.pos, d.passed = d.before[i/beforeRanks], i&^(beforeRanks-1)
	}
	d.pass(&d.pos, d.passed, i)
	d.passed = i
	return d.pos
}
