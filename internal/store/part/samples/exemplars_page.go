package samples

import (
	"encoding/binary"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/series"
)

// maxExemplarBytes bounds the bytes of the exemplars of a page, each counted with its labels. Writers close a
// page long before: when it has reached the size of a page and one exemplar more.
const maxExemplarBytes = 2 << 20

// exemplarPage collects the exemplars of consecutive ranks. They are few, and most series have one or two,
// so each column covers the whole page, and a reader decodes all of it. Each label set is stored once, in
// order of arrival, so references to sets that occur once, as with trace ids, need no bits.
type exemplarPage struct {
	values column.ValueCoder
	ints   column.IntCoder

	rank0  uint32
	counts []int64
	times  []int64
	floats []uint64
	refs   []int64
	span   model.TimeRange
	bytes  int

	ids   map[string]int64
	sets  []byte
	last  []byte
	piece []byte
}

func (p *exemplarPage) reset() {
	p.counts, p.times, p.floats, p.refs = p.counts[:0], p.times[:0], p.floats[:0], p.refs[:0]
	p.span, p.bytes, p.sets, p.last = file.NoTimes, 0, p.sets[:0], p.last[:0]
	clear(p.ids)
}

func (p *exemplarPage) empty() bool { return len(p.times) == 0 }

func (p *exemplarPage) full(z *file.Sizes) bool {
	return p.bytes >= z.PageBytes || len(p.times) >= z.Rows || len(p.counts) >= file.MaxPageRanks
}

// add appends an exemplar of a rank that is not less than those in the page.
func (p *exemplarPage) add(rank uint32, t int64, e model.Exemplar) {
	if p.empty() {
		p.rank0 = rank
	}
	for uint32(len(p.counts)) <= rank-p.rank0 {
		p.counts = append(p.counts, 0)
	}
	p.counts[rank-p.rank0]++
	p.times, p.floats = append(p.times, t), append(p.floats, e.Value)
	p.span.Min, p.span.Max = min(p.span.Min, t), max(p.span.Max, t)
	p.bytes += 8 + len(e.Labels)
	id, ok := p.ids[string(e.Labels)]
	if !ok {
		if p.ids == nil {
			p.ids = make(map[string]int64)
		}
		id = int64(len(p.ids))
		p.ids[string(e.Labels)] = id
		p.sets, p.last = series.AppendLabelSet(p.sets, p.last, e.Labels)
	}
	p.refs = append(p.refs, id)
}

// payload appends the page.
func (p *exemplarPage) payload(dst []byte) []byte {
	dst = append(dst, byte(model.Exemplars), 0)
	dst = binary.AppendUvarint(dst, uint64(p.rank0))
	dst = binary.AppendUvarint(dst, uint64(len(p.counts)))
	dst = p.ints.Append(dst, p.counts)
	dst = p.ints.Append(dst, p.times)
	p.piece = p.values.Append(p.piece[:0], p.floats)
	dst = column.AppendBytes(dst, p.piece)
	dst = p.ints.Append(dst, p.refs)
	dst = binary.AppendUvarint(dst, uint64(len(p.ids)))
	return append(dst, p.sets...)
}
