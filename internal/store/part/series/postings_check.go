package series

import (
	"bytes"

	"github.com/zeebo/xxh3"

	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
)

// PairSum spreads a (rank, label) over 64 bits.
func PairSum(name, value []byte, rank uint32) uint64 {
	return rankSum(pairHash(name, value), rank)
}

func pairHash(name, value []byte) uint64 { return xxh3.HashSeed(name, xxh3.Hash(value)) }

func rankSum(h uint64, rank uint32) uint64 {
	h ^= uint64(rank) * 0x9e3779b97f4a7c15
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	return h ^ h>>32
}

// CheckPostings takes the sum over the postings from that over the labels, and verifies their order. That
// pages hold the entries that the index names was verified on opening each.
func CheckPostings(c *file.Checking) error {
	m := c.Reader.Meta()
	if !m.Labels {
		return nil
	}
	pages := 0
	w := &postingWalk{pages: file.NewWalk(c.Ctx, c.Reader, PostingSection)}
	for i := range m.Tenants {
		t := &m.Tenants[i]
		var lastName, lastValue []byte
		var lastEnd uint32
		w.tenant, w.series = uint32(i), t.Series
		for ok := w.seek(nil, nil); ok; ok = w.next() {
			if e := w.entry; w.first {
				pages++
				if !bytes.Equal(e.Name, w.dir.name) || !bytes.Equal(e.Value, w.dir.value) {
					return file.AtPage(e.Addr, column.Corrupt("page of postings does not begin as the index says"))
				}
			}
			order := comparePair(lastName, lastValue, w.dir.name, w.dir.value)
			if lastName != nil && (order > 0 || order == 0 && w.dir.first < lastEnd) {
				return column.Corrupt("postings of %q=%q after %q=%q", w.dir.name, w.dir.value, lastName, lastValue)
			}
			lastName, lastValue = append(lastName[:0], w.dir.name...), append(lastValue[:0], w.dir.value...)
			h := pairHash(w.dir.name, w.dir.value)
			err := w.dir.runs(t.Series, func(from, to uint32) {
				lastEnd = to
				for k := from; k < to; k++ {
					c.Pairs -= rankSum(h, k+t.Rank0)
				}
			})
			if err != nil {
				return file.AtPage(w.entry.Addr, err)
			}
		}
		if w.err != nil {
			return w.err
		}
	}
	if pages != len(c.Entries[PostingSection.Number]) {
		return column.Corrupt("%d pages of postings were reached, the index has %d", pages, len(c.Entries[PostingSection.Number]))
	}
	if c.Pairs != 0 {
		return column.Corrupt("postings and labels disagree")
	}
	return nil
}
