package part

import (
	"context"
	"fmt"
	"math"

	"github.com/zeebo/xxh3"

	"github.com/shaledb/shale/internal/model"
)

// textMerge joins the texts of one series.
type textMerge struct {
	in []textInput
	// seen are the rows of the time at, of which several inputs have some: what they hash to.
	seen map[xxh3.Uint128]struct{}
	at   int64
	some bool
	buf  []byte
}

// textInput is a walk of one input.
type textInput struct {
	run   TextRun
	piece *TextPiece
	// rows are those of the piece once it is decoded, nil before; next is the first that is not taken.
	rows *model.TextRows
	next int
	// time is that of the next row.
	time  int64
	done  bool
	remap textRemap
}

// Text gives the current series its text: that of all inputs, the oldest first, within clip. Rows are merged by time, at
// equal times by input, then by arrival; of rows that are equal in time, line and metadata the first stays. It may be called
// several times for a series, with clips that ascend and have no time in common. Of each input it holds a page or two.
func (p *Writer) Text(ctx context.Context, texts []Text, clip model.TimeRange) error {
	if p.err != nil || len(texts) == 0 {
		return p.err
	}
	if p.done || p.footer.meta.Series == 0 {
		p.err = invalid("text without a series")
		return p.err
	}
	if err := p.mergeText(ctx, texts, clip); err != nil {
		p.err = fmt.Errorf("series %s: %w", p.last, err)
	}
	return p.err
}

func (p *Writer) mergeText(ctx context.Context, texts []Text, clip model.TimeRange) error {
	m := &p.text.merge
	defer func() {
		clear(m.in)
		m.in, m.some = m.in[:0], false
	}()
	for _, t := range texts {
		if times, n := t.Extent(); n == 0 || !times.Overlaps(clip) {
			continue
		}
		m.in = append(m.in, textInput{run: t.Run(ctx, clip)})
		if err := m.in[len(m.in)-1].advance(); err != nil {
			return err
		}
	}
	for {
		least, next := m.least()
		if least == nil {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := p.takeText(ctx, least, next); err != nil {
			return err
		}
	}
}

// least returns the input with the least row, of equal times the oldest, and the least time of the others.
func (m *textMerge) least() (least *textInput, next int64) {
	next = math.MaxInt64
	var last int64
	for i := range m.in {
		in := &m.in[i]
		switch {
		case in.done:
		case least == nil:
			least, last = in, in.time
		case in.time < last:
			least, last, next = in, in.time, last
		default:
			next = min(next, in.time)
		}
	}
	return least, next
}

// advance moves to the next piece.
func (in *textInput) advance() error {
	if !in.run.Next() {
		in.done = true
		return in.run.Err()
	}
	before := in.time
	begun := in.piece != nil
	in.piece, in.rows, in.next = in.run.Piece(), nil, 0
	in.time = in.piece.times.Min
	if begun && in.time < before {
		return corrupt("text goes on before the time at which it was")
	}
	return nil
}

// takeText takes rows of the input that has the least one: all that come before next, or those of one time.
func (p *Writer) takeText(ctx context.Context, in *textInput, next int64) error {
	m := &p.text.merge
	alone := in.time < next && !(m.some && m.at == in.time)
	if in.rows == nil {
		if alone && in.piece.times.Max < next && p.canCopy(in.piece) {
			if err := p.copyUnit(ctx, in.piece.stored); err != nil {
				return err
			}
			in.time = in.piece.times.Max
			return in.advance()
		}
		rows, err := in.piece.Rows(ctx)
		if err != nil {
			return err
		}
		if len(rows.Times) == 0 || rows.Times[0] != in.time {
			return corrupt("a piece of text begins at another time than it should")
		}
		in.rows = rows
		in.remap.generation = 0
	}
	times := in.rows.Times
	i, j := in.next, in.next+1
	if alone && in.piece.distinct {
		for j < len(times) && times[j] < next {
			j++
		}
		if err := p.addText(in.rows, i, j, &in.remap); err != nil {
			return err
		}
	} else {
		for j < len(times) && times[j] == times[i] {
			j++
		}
		if j == i+1 && alone {
			if err := p.addText(in.rows, i, j, &in.remap); err != nil {
				return err
			}
		} else if err := p.addDistinct(in, i, j); err != nil {
			return err
		}
	}
	if in.next = j; j < len(times) {
		in.time = times[j]
		return nil
	}
	in.time = times[j-1]
	return in.advance()
}

// addDistinct adds those of the rows [i, j), which are of one time, that are not there yet.
func (p *Writer) addDistinct(in *textInput, i, j int) error {
	m, rows := &p.text.merge, in.rows
	if t := rows.Times[i]; !m.some || m.at != t {
		if m.seen == nil {
			m.seen = make(map[xxh3.Uint128]struct{})
		}
		clear(m.seen)
		m.at, m.some = t, true
	}
	for k := i; k < j; k++ {
		line := rows.Line(k)
		h := xxh3.Hash128(line)
		if md := rows.MetadataAt(k); len(md) > 0 {
			m.buf = append(append(m.buf[:0], md...), 0)
			g := xxh3.Hash128Seed(m.buf, h.Lo)
			h.Hi, h.Lo = h.Hi^g.Hi, h.Lo^g.Lo
		}
		if _, there := m.seen[h]; there {
			continue
		}
		m.seen[h] = struct{}{}
		if err := p.addText(rows, k, k+1, &in.remap); err != nil {
			return err
		}
	}
	return nil
}

// addText adds the rows [i, j), a page at a time.
func (p *Writer) addText(rows *model.TextRows, i, j int, remap *textRemap) error {
	x := &p.text
	for i < j {
		if rows.Times[i] < x.last {
			return invalid("text of time %d after %d", rows.Times[i], x.last)
		}
		k, err := x.own.room(rows, i, j, &p.sizes)
		if err != nil {
			return err
		}
		n := x.own.append(rows, i, k, remap)
		if n > 0 {
			p.countText(rows, i, i+n)
			x.last = rows.Times[i+n-1]
		}
		if i += n; i < j || x.own.full(&p.sizes) {
			if err := p.writeOwn(x.own.cut(&p.sizes)); err != nil {
				return err
			}
		}
	}
	return nil
}

// countText counts rows, and enters their windows.
func (p *Writer) countText(rows *model.TextRows, i, j int) {
	begin := rows.Begin
	if i > 0 {
		begin = rows.Ends[i-1]
	}
	p.countTimes(rows.Times[i:j], uint64(rows.Ends[j-1]-begin))
}

func (p *Writer) countTimes(times []int64, bytes uint64) {
	t := p.tenant()
	t.Text += uint64(len(times))
	t.TextBytes += bytes
	t.Range.Min, t.Range.Max = min(t.Range.Min, times[0]), max(t.Range.Max, times[len(times)-1])
	if p.o.Windows.Count > 0 {
		p.masks.masks[len(p.masks.masks)-1] |= int64(p.o.Windows.of(times))
	}
}

// canCopy reports whether a piece may be copied as it is stored, as far as its neighbours in time are concerned: there is no
// row that it must be merged with. It must be large enough, and so must be what is waiting before it.
func (p *Writer) canCopy(piece *TextPiece) bool {
	s := piece.stored
	if s == nil || s.e.text.bytes < uint64(p.sizes.text/2) || s.e.text.filter.Len == 0 {
		return false
	}
	own := &p.text.own
	return own.empty() || own.size() >= p.sizes.text/2
}
