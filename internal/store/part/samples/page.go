package samples

import (
	"encoding/binary"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
)

const (
	// MaxSeriesRows bounds the rows of one series in a page; what follows goes on in the next. Decoding them
	// is what a query for a single row of the series pays.
	MaxSeriesRows = 1 << 14
	// shortRows is the number of rows below which a series' values join the page-wide column: a segment of
	// its own would cost about four bytes.
	shortRows = 8
	// blockRows is the number of rows of the page-wide column that are coded together.
	blockRows = 512
)

const (
	samplesStarts     byte = 1
	samplesHistograms byte = 2

	singlesDirect byte = 0
	singlesDict   byte = 1
)

// samplePage collects the rows of consecutive ranks and makes the payload of a page of them.
type samplePage struct {
	values     column.ValueCoder
	ints       column.IntCoder
	histograms histogramCoder

	rank0  uint32
	counts []int64 // rows by rank
	// mixed is 1 for each rank that has histograms. It ends with the last such rank.
	mixed []int64
	rows  int
	times model.TimeRange

	singles []int64 // times of series of one row
	seqs    timeDict

	// Values of short series wait here until they fill a block.
	short      []uint64
	shortBuf   []byte
	shortLens  []int64
	longBuf    []byte
	longLens   []int64
	shortCount int

	starts      bool
	shortStarts []int64 // as long as shortCount where starts exist, padded with zeros
	longStarts  []byte
	longStartsN []int64 // encoded length by long series, 0: none known
}

func (p *samplePage) reset() {
	p.counts, p.rows, p.times = p.counts[:0], 0, file.NoTimes
	if len(p.mixed) > 0 {
		p.mixed = p.mixed[:0]
		p.histograms.reset()
	}
	p.singles = p.singles[:0]
	p.seqs.reset()
	p.short, p.shortBuf, p.shortLens, p.shortCount = p.short[:0], p.shortBuf[:0], p.shortLens[:0], 0
	p.longBuf, p.longLens = p.longBuf[:0], p.longLens[:0]
	p.starts, p.shortStarts, p.longStarts, p.longStartsN = false, p.shortStarts[:0], p.longStarts[:0], p.longStartsN[:0]
}

func (p *samplePage) empty() bool { return p.rows == 0 }

// fits reports whether n rows of a rank can still be added.
func (p *samplePage) fits(rank uint32, n int, z *file.Sizes) bool {
	return p.rows+n <= z.Rows && rank-p.rank0 < file.MaxPageRanks
}

// full estimates whether the payload has reached the size of a page.
func (p *samplePage) full(z *file.Sizes) bool {
	return p.rows >= z.Rows || len(p.counts) >= file.MaxPageRanks ||
		len(p.longBuf)+len(p.shortBuf)+4*len(p.short)+p.seqs.size()+2*len(p.singles)+len(p.counts)/4+p.histograms.layouts.size() >= z.PageBytes
}

// add appends rows [i, j) of a rank that is not yet in the page; i < j.
func (p *samplePage) add(rank uint32, r *model.Rows, i, j int) error {
	if p.empty() {
		p.rank0 = rank
	}
	for uint32(len(p.counts)) < rank-p.rank0 {
		p.counts = append(p.counts, 0)
	}
	n := j - i
	p.counts = append(p.counts, int64(n))
	p.rows += n
	p.times.Min, p.times.Max = min(p.times.Min, r.Times[i]), max(p.times.Max, r.Times[j-1])
	if n == 1 {
		p.singles = append(p.singles, r.Times[i])
	} else {
		p.seqs.add(r.Times[i:j])
	}
	if mixed := len(r.Kinds) > 0 && anyBlob(r, i, j); n >= shortRows || mixed {
		before := len(p.longBuf)
		if mixed {
			if err := p.addMixed(r, i, j); err != nil {
				return err
			}
		} else {
			p.longBuf = p.values.Append(p.longBuf, r.Values[i:j])
		}
		p.longLens = append(p.longLens, int64(len(p.longBuf)-before))
		p.addLongStarts(r, i, j)
		return nil
	}
	p.addShortStarts(r, i, j)
	p.shortCount += n
	for p.short = append(p.short, r.Values[i:j]...); len(p.short) >= blockRows; {
		p.closeBlock(blockRows)
	}
	return nil
}

// addMixed adds the segment of a series that has histograms, which is the last one so far.
func (p *samplePage) addMixed(r *model.Rows, i, j int) error {
	p.mixed = p.padMixed(len(p.counts) - 1)
	p.mixed = append(p.mixed, 1)
	var err error
	p.longBuf, err = p.histograms.append(p.longBuf, r, i, j, &p.values)
	return err
}

func (p *samplePage) padMixed(n int) []int64 {
	for len(p.mixed) < n {
		p.mixed = append(p.mixed, 0)
	}
	return p.mixed
}

func anyBlob(r *model.Rows, i, j int) bool {
	for _, k := range r.Kinds[i:j] {
		if k != model.KindFloat {
			return true
		}
	}
	return false
}

func (p *samplePage) closeBlock(n int) {
	before := len(p.shortBuf)
	p.shortBuf = p.values.Append(p.shortBuf, p.short[:n])
	p.shortLens = append(p.shortLens, int64(len(p.shortBuf)-before))
	p.short = p.short[:copy(p.short, p.short[n:])]
}

func (p *samplePage) addLongStarts(r *model.Rows, i, j int) {
	if !anyStart(r, i, j) {
		p.longStartsN = append(p.longStartsN, 0)
		return
	}
	p.starts = true
	before := len(p.longStarts)
	p.longStarts = p.ints.Append(p.longStarts, r.Starts[i:j])
	p.longStartsN = append(p.longStartsN, int64(len(p.longStarts)-before))
}

func (p *samplePage) addShortStarts(r *model.Rows, i, j int) {
	if !anyStart(r, i, j) {
		return
	}
	p.starts = true
	p.padShortStarts()
	p.shortStarts = append(p.shortStarts, r.Starts[i:j]...)
}

// padShortStarts gives every short row so far an unknown start.
func (p *samplePage) padShortStarts() {
	for len(p.shortStarts) < p.shortCount {
		p.shortStarts = append(p.shortStarts, 0)
	}
}

func anyStart(r *model.Rows, i, j int) bool {
	if len(r.Starts) == 0 {
		return false
	}
	for _, s := range r.Starts[i:j] {
		if s != 0 {
			return true
		}
	}
	return false
}

// payload appends the page.
func (p *samplePage) payload(dst []byte) []byte {
	flags := byte(0)
	if p.starts {
		flags |= samplesStarts
	}
	if len(p.mixed) > 0 {
		flags |= samplesHistograms
	}
	dst = append(dst, byte(model.Samples), flags)
	dst = binary.AppendUvarint(dst, uint64(p.rank0))
	dst = binary.AppendUvarint(dst, uint64(len(p.counts)))
	dst = p.ints.Append(dst, p.counts)
	if len(p.mixed) > 0 {
		p.mixed = p.padMixed(len(p.counts))
		dst = p.ints.Append(dst, p.mixed)
	}
	dst = p.appendSingles(dst)
	dst = p.seqs.append(dst, &p.ints)
	if len(p.mixed) > 0 {
		p.histograms.piece = p.histograms.layouts.append(p.histograms.piece[:0])
		dst = column.AppendBytes(dst, p.histograms.piece)
	}
	if len(p.short) > 0 {
		p.closeBlock(len(p.short))
	}
	dst = p.ints.Append(dst, p.shortLens)
	dst = p.ints.Append(dst, p.longLens)
	if p.starts {
		dst = p.appendStarts(dst)
	}
	return append(append(dst, p.shortBuf...), p.longBuf...)
}

func (p *samplePage) appendStarts(dst []byte) []byte {
	p.padShortStarts()
	lens := p.shortLens[:0] // no longer needed
	var buf []byte
	for begin := 0; begin < p.shortCount; begin += blockRows {
		before := len(buf)
		buf = p.ints.Append(buf, p.shortStarts[begin:min(begin+blockRows, p.shortCount)])
		lens = append(lens, int64(len(buf)-before))
	}
	dst = p.ints.Append(dst, lens)
	dst = p.ints.Append(dst, p.longStartsN)
	return append(append(dst, buf...), p.longStarts...)
}

// appendSingles writes the times of series of one row: straight, or as references into a sorted dictionary if
// that is shorter, as it is when a scrape gave its time to many series.
func (p *samplePage) appendSingles(dst []byte) []byte {
	if len(p.singles) == 0 {
		return dst
	}
	begin := len(dst)
	dst = p.ints.Append(append(dst, singlesDirect), p.singles)
	if len(dst)-begin <= 32 || len(p.singles) < 16 {
		return dst
	}
	dict, refs := p.seqs.dictionary(p.singles)
	if dict == nil {
		return dst
	}
	straight := len(dst) - begin
	with := append(p.seqs.scratch[:0], singlesDict)
	with = binary.AppendUvarint(with, uint64(len(dict)))
	with = p.ints.Append(p.ints.Append(with, dict), refs)
	p.seqs.scratch = with
	if len(with) < straight {
		dst = append(dst[:begin], with...)
	}
	return dst
}
