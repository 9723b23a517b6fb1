package samples

import (
	"sort"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
)

// sampleDir is the decoded directory of a page of samples: it says where the rows of each rank are.
type sampleDir struct {
	payload []byte
	rank0   uint32
	rows    int
	counts  []int64
	// mixed is 1 for ranks that have histograms; empty if none has.
	mixed []int64
	// before holds the position in each column, once for every beforeRanks ranks.
	before []columnPos
	end    columnPos
	// pos is the position before the rank passed.
	pos    columnPos
	passed int

	singles []int64
	dict    []int64

	// A time is origin + unit x number.
	origin    int64
	unit      uint64
	seqRows   []int64
	seqLens   []int64
	seqRefs   []int64
	seqPlaces []int64 // where in its sequence the times of a series begin
	seqBytes  []byte
	seqEnds   []uint32
	// seq is the sequence that was last decoded into times.
	seq   int
	times []int64
	// kept are sequences of which some series have only a part, and keptAt is the offset of each, or -1.
	// Decoding them again for each series would let a forged page of 16,384 series take very long.
	kept   []int64
	keptAt []int32

	short, long             segments
	shortStarts, longStarts segments

	ints   column.IntDecoder
	values column.ValueDecoder
	lens   []int64
	starts []int64

	// layouts are the layouts of histograms, which the first histogram decodes into layoutsOf.
	layouts     []byte
	layoutsRead bool
	layoutsOf   []layout // decoded

	hasStarts bool
	// block and blockStarts are the last decoded block of the page-wide column, which has the number at.
	at          int
	block       []uint64
	blockStarts []int64
}

// segments are stored one after the other.
type segments struct {
	bytes []byte
	ends  []uint32
}

func (c *segments) segment(i int) []byte {
	begin := uint32(0)
	if i > 0 {
		begin = c.ends[i-1]
	}
	return c.bytes[begin:c.ends[i]]
}

// setEnds turns lengths into ends and returns their sum.
func setEnds(ends []uint32, lens []int64, s *column.Scan) ([]uint32, uint64) {
	ends = ends[:0]
	sum := uint64(0)
	for _, n := range lens {
		sum += uint64(n)
		if n < 0 || sum > file.MaxPageBytes {
			s.Fail()
			return ends, 0
		}
		ends = append(ends, uint32(sum))
	}
	return ends, sum
}

// decode reads the directory of a page. Everything is bounded by the rows and ranks that a page may have.
func (d *sampleDir) decode(payload []byte) error {
	const object = "page of samples"
	s := column.Scan{Rest: payload}
	d.payload, d.seq, d.at = payload, -1, -1
	family, flags := s.Byte(), s.Byte()
	if family != byte(model.Samples) || flags&^(samplesStarts|samplesHistograms) != 0 {
		return column.Corrupt("%s: family %d with flags %x is unknown", object, family, flags)
	}
	d.rank0 = uint32(s.Below(1<<32 - 1))
	ranks := s.Below(file.MaxPageRanks)
	d.counts = d.ints.Append(d.counts[:0], &s, ranks)
	d.mixed = d.mixed[:0]
	if flags&samplesHistograms != 0 {
		d.mixed = d.ints.Append(d.mixed, &s, ranks)
	}
	if s.Bad || ranks == 0 {
		return column.Corrupt("%s: no directory", object)
	}
	if err := d.count(); err != nil {
		return err
	}
	end := d.end
	d.openSingles(&s, int(end.single))
	d.openSequences(&s, int(end.multi))
	if d.layouts, d.layoutsRead = nil, false; len(d.mixed) > 0 {
		d.layouts = s.Bytes()
	}
	blocks := (int(end.short) + blockRows - 1) / blockRows
	shortLen := d.openLens(&s, &d.short, blocks)
	longLen := d.openLens(&s, &d.long, int(end.long))
	if d.hasStarts = flags&samplesStarts != 0; d.hasStarts {
		a := d.openLens(&s, &d.shortStarts, blocks)
		b := d.openLens(&s, &d.longStarts, int(end.long))
		d.shortStarts.bytes, d.longStarts.bytes = s.Next(a), s.Next(b)
	}
	d.short.bytes, d.long.bytes = s.Next(shortLen), s.Next(longLen)
	return s.End(object)
}

// forget drops the page, but keeps the memory of its directory.
func (d *sampleDir) forget() {
	d.payload, d.seqBytes, d.layouts, d.layoutsRead = nil, nil, nil, false
	d.short.bytes, d.long.bytes, d.shortStarts.bytes, d.longStarts.bytes = nil, nil, nil, nil
	d.layoutsOf = nil // which are few, and may have long bounds
}

func (d *sampleDir) span() (rank0 uint32, ranks, rows int) {
	return d.rank0, len(d.counts), d.rows
}

func (d *sampleDir) extent() (model.TimeRange, uint64, error) {
	times, rows := file.NoTimes, uint64(0)
	for k, n := range d.counts {
		if n == 0 {
			continue
		}
		ts, err := d.timesOf(k)
		if err != nil {
			return times, rows, err
		}
		times.Min, times.Max = min(times.Min, ts[0]), max(times.Max, ts[n-1])
		rows += uint64(n)
	}
	return times, rows, nil
}

func (d *sampleDir) openSingles(s *column.Scan, n int) {
	d.dict, d.singles = d.dict[:0], d.singles[:0]
	if n == 0 {
		return
	}
	switch mode := s.Byte(); mode {
	case singlesDirect:
	case singlesDict:
		size := s.Below(uint64(n))
		d.dict = d.ints.Append(d.dict, s, size)
		if size == 0 {
			s.Fail()
		}
	default:
		s.Fail()
	}
	d.singles = d.ints.Append(d.singles, s, n)
	if s.Bad || len(d.dict) == 0 {
		return
	}
	for i, ref := range d.singles {
		if uint64(ref) >= uint64(len(d.dict)) {
			s.Fail()
			return
		}
		d.singles[i] = d.dict[ref]
	}
}

// openSequences reads the references of n series to sequences, and where these are. All sequences together
// have no more times than the page has rows, which bounds what reading them takes.
func (d *sampleDir) openSequences(s *column.Scan, n int) {
	d.seqRows, d.seqLens, d.seqBytes = d.seqRows[:0], d.seqLens[:0], nil
	d.seqRefs, d.seqPlaces = d.seqRefs[:0], d.seqPlaces[:0]
	d.kept, d.keptAt = d.kept[:0], d.keptAt[:0]
	if n == 0 {
		return
	}
	distinct := s.Below(uint64(n))
	for range distinct {
		d.keptAt = append(d.keptAt, -1)
	}
	d.origin, d.unit = s.Varint(), s.Uvarint()
	d.seqRows = d.ints.Append(d.seqRows, s, distinct)
	d.seqLens = d.ints.Append(d.seqLens, s, distinct)
	d.seqRefs = d.ints.Append(d.seqRefs, s, n)
	d.seqPlaces = d.ints.Append(d.seqPlaces, s, n)
	if s.Bad {
		return
	}
	left := uint64(d.rows)
	for _, rows := range d.seqRows {
		if uint64(rows) > left {
			s.Fail()
			return
		}
		left -= uint64(rows)
	}
	series := 0
	for _, rows := range d.counts {
		if rows < 2 {
			continue
		}
		ref, place := uint64(d.seqRefs[series]), uint64(d.seqPlaces[series])
		if ref >= uint64(distinct) || place > file.MaxPageRows || place+uint64(rows) > uint64(d.seqRows[ref]) {
			s.Fail()
			return
		}
		series++
	}
	var sum uint64
	d.seqEnds, sum = setEnds(d.seqEnds, d.seqLens, s)
	d.seqBytes = s.Next(sum)
}

func (d *sampleDir) openLens(s *column.Scan, c *segments, n int) uint64 {
	d.lens = d.ints.Append(d.lens[:0], s, n)
	if s.Bad {
		c.ends = c.ends[:0]
		return 0
	}
	var sum uint64
	c.ends, sum = setEnds(c.ends, d.lens, s)
	return sum
}

// timesOf returns the times of the i-th rank of the page, which has rows. They are valid until the next call.
func (d *sampleDir) timesOf(i int) ([]int64, error) {
	n, pos := int(d.counts[i]), d.posOf(i)
	if n == 1 {
		return d.singles[pos.single : pos.single+1], nil
	}
	ref, place := int(d.seqRefs[pos.multi]), int(d.seqPlaces[pos.multi])
	rows := int(d.seqRows[ref])
	if at := int(d.keptAt[ref]); at >= 0 {
		return d.kept[at+place : at+place+n], nil
	}
	if err := d.openSequence(ref); err != nil {
		return nil, err
	}
	if n < rows {
		d.keptAt[ref] = int32(len(d.kept))
		d.kept = append(d.kept, d.times...)
	}
	return d.times[place : place+n], nil
}

// openSequence decodes a sequence into times.
func (d *sampleDir) openSequence(ref int) error {
	if d.seq == ref {
		return nil
	}
	begin := uint32(0)
	if ref > 0 {
		begin = d.seqEnds[ref-1]
	}
	s := column.Scan{Rest: d.seqBytes[begin:d.seqEnds[ref]]}
	d.seq = -1
	var even bool
	if d.times, even = column.EvenTimes(d.times[:0], &s, int(d.seqRows[ref]), d.origin, d.unit); !even {
		d.times = d.ints.Append(d.times, &s, int(d.seqRows[ref]))
	}
	if err := s.End("times"); err != nil {
		return err
	}
	if !even && !d.spreadTimes() {
		return column.Corrupt("page of samples: times do not ascend")
	}
	d.seq = ref
	return nil
}

// spreadTimes makes times of numbers, and reports whether they ascend.
func (d *sampleDir) spreadTimes() bool {
	// Fields are read once: a compiler must take it that writing a time could change them.
	origin, unit := d.origin, d.unit
	before, rest, ascend := origin+int64(uint64(d.times[0])*unit), d.times[1:], true
	d.times[0] = before
	for k, x := range rest {
		t := origin + int64(uint64(x)*unit)
		if t <= before {
			ascend = false
		}
		rest[k], before = t, t
	}
	return ascend
}

// within returns the times of the i-th rank of the page, and which of them, [from, to), lie in rg.
func (d *sampleDir) within(i int, rg model.TimeRange) (times []int64, from, to int, err error) {
	n := int(d.counts[i])
	if n == 0 {
		return nil, 0, 0, nil
	}
	if times, err = d.timesOf(i); err != nil {
		return nil, 0, 0, err
	}
	if to = n; times[0] < rg.Min {
		from = sort.Search(n, func(k int) bool { return times[k] >= rg.Min })
	}
	if times[n-1] > rg.Max {
		to = sort.Search(n, func(k int) bool { return times[k] > rg.Max })
	}
	return times, from, to, nil
}

func (d *sampleDir) has(i int, rg model.TimeRange) (bool, error) {
	_, from, to, err := d.within(i, rg)
	return from < to, err
}

func (d *sampleDir) appendRows(i int, rg model.TimeRange, dst *model.Rows) error {
	times, from, to, err := d.within(i, rg)
	if err != nil || from >= to {
		return err
	}
	switch {
	case d.isShort(i):
		return d.appendShort(i, from, to, times, dst)
	case len(d.mixed) > 0 && d.mixed[i] != 0:
		return d.appendMixed(i, from, to, times, dst)
	}
	return d.appendLong(i, from, to, times, dst)
}

// startsOf decodes the starts of a long series; it returns nil if none is known.
func (d *sampleDir) startsOf(long, n int) ([]int64, error) {
	if !d.hasStarts {
		return nil, nil
	}
	segment := d.longStarts.segment(long)
	if len(segment) == 0 {
		return nil, nil
	}
	s := column.Scan{Rest: segment}
	d.starts = d.ints.Append(d.starts[:0], &s, n)
	return d.starts, s.End("starts")
}

// appendMixed is for series that have histograms.
func (d *sampleDir) appendMixed(i, from, to int, times []int64, dst *model.Rows) error {
	if !d.layoutsRead {
		var err error
		if d.layoutsOf, err = readLayouts(d.layoutsOf[:0], d.layouts); err != nil {
			return err
		}
		d.layoutsRead = true
	}
	n, at := int(d.counts[i]), int(d.posOf(i).long)
	starts, err := d.startsOf(at, n)
	if err != nil {
		return err
	}
	h := borrowDecoder(d.layoutsOf)
	defer h.giveBack()
	if err := h.decode(d.long.segment(at), n, &d.values); err != nil {
		return err
	}
	for k := from; k < to; k++ {
		start := int64(0)
		if starts != nil {
			start = starts[k]
		}
		if err := h.appendRow(k, times[k], start, dst); err != nil {
			return err
		}
	}
	return nil
}

func (d *sampleDir) appendLong(i, from, to int, times []int64, dst *model.Rows) error {
	n, at := int(d.counts[i]), int(d.posOf(i).long)
	begin := len(dst.Values)
	out, err := d.values.Append(dst.Values, d.long.segment(at), n)
	if err != nil {
		return err
	}
	copy(out[begin:], out[begin+from:begin+to])
	dst.Values = out[:begin+to-from]
	dst.Times = append(dst.Times, times[from:to]...)
	if len(dst.Kinds) > 0 {
		for len(dst.Kinds) < len(dst.Times) {
			dst.Kinds = append(dst.Kinds, model.KindFloat)
		}
	}
	starts, err := d.startsOf(at, n)
	if err != nil {
		return err
	}
	if starts != nil || len(dst.Starts) > 0 {
		for len(dst.Starts) < begin {
			dst.Starts = append(dst.Starts, 0)
		}
		for k := from; k < to; k++ {
			start := int64(0)
			if starts != nil {
				start = starts[k]
			}
			dst.Starts = append(dst.Starts, start)
		}
	}
	return nil
}

func (d *sampleDir) appendShort(i, from, to int, times []int64, dst *model.Rows) error {
	first := int(d.posOf(i).short)
	// Columns that rows seldom have are left alone.
	plain := !d.hasStarts && len(dst.Starts) == 0 && len(dst.Kinds) == 0
	for k := from; k < to; {
		row := first + k
		if err := d.openBlock(row / blockRows); err != nil {
			return err
		}
		row %= blockRows
		if n := min(to-k, blockRows-row); plain {
			dst.Times = append(dst.Times, times[k:k+n]...)
			dst.Values = append(dst.Values, d.block[row:row+n]...)
			k += n
			continue
		}
		start := int64(0)
		if d.hasStarts {
			start = d.blockStarts[row]
		}
		dst.Append(times[k], d.block[row], start)
		k++
	}
	return nil
}

// openBlock decodes a block of the page-wide column, and of its starts.
func (d *sampleDir) openBlock(block int) error {
	if d.at == block {
		return nil
	}
	n := min(int(d.end.short)-block*blockRows, blockRows)
	d.at = -1
	var err error
	if d.block, err = d.values.Append(d.block[:0], d.short.segment(block), n); err != nil {
		return err
	}
	if d.hasStarts {
		s := column.Scan{Rest: d.shortStarts.segment(block)}
		d.blockStarts = d.ints.Append(d.blockStarts[:0], &s, n)
		if err := s.End("starts"); err != nil {
			return err
		}
	}
	d.at = block
	return nil
}
