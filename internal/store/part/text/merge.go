package text

import (
	"context"
	"math"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
)

// merge joins the texts of one series.
type merge struct {
	in   []mergeInput
	clip model.TimeRange
	// seen are the rows of the time at if several inputs have rows of it; ties counts the rows compared.
	seen tieSet
	at   int64
	some bool
	ties int
}

// mergeInput is a walk of one input.
type mergeInput struct {
	text  Series
	run   Run
	piece *Piece
	// rows are the decoded rows of the piece, nil before; next is the first row that is not taken.
	rows *model.TextRows
	next int
	// time is that of the next row.
	time  int64
	done  bool
	remap textRemap
}

// Merge gives the current series the text of all inputs, the oldest first, within clip: see [Writer.Text].
func (x *Writer) Merge(ctx context.Context, texts []Series, clip model.TimeRange) error {
	m := &x.merge
	m.clip = clip
	defer func() {
		clear(m.in)
		m.in, m.some = m.in[:0], false
		m.seen.release()
	}()
	for _, t := range texts {
		if times, n := t.Extent(); n == 0 || !times.Overlaps(clip) {
			continue
		}
		m.in = append(m.in, mergeInput{text: t, run: t.Run(ctx, clip)})
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
		if err := x.takeText(ctx, least, next); err != nil {
			return err
		}
	}
}

// least returns the input with the least time, the oldest of equal ones, and the least time of the others.
func (m *merge) least() (least *mergeInput, next int64) {
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
func (in *mergeInput) advance() error {
	if !in.run.Next() {
		in.done = true
		return in.run.Err()
	}
	before := in.time
	begun := in.piece != nil
	in.piece, in.rows, in.next = in.run.Piece(), nil, 0
	in.time = in.piece.Times.Min
	if begun && in.time < before {
		return column.Corrupt("text goes back in time")
	}
	return nil
}

// takeText takes rows of the input with the least time: all before next, or those of one time.
//
// Invariant: no input has a row before the one that is taken. When the first row of a time is taken, each
// input with rows of that time is at the first of them. So either only one input has that time, and it is
// distinct or has all rows of the time in one piece, or all rows of the time go through addDistinct, by input
// and then by arrival.
func (x *Writer) takeText(ctx context.Context, in *mergeInput, next int64) error {
	m := &x.merge
	alone := in.time < next && !(m.some && m.at == in.time)
	if in.rows == nil {
		if alone && in.piece.Times.Max < next && x.canCopy(in.piece) {
			if err := x.copyUnit(ctx, in.piece.stored); err != nil {
				return err
			}
			in.time = in.piece.Times.Max
			return in.advance()
		}
		rows, err := in.piece.Rows(ctx)
		if err != nil {
			return err
		}
		if len(rows.Times) == 0 || rows.Times[0] != in.time {
			return column.Corrupt("a piece of text does not begin at the time that the index names")
		}
		in.rows = rows
		in.remap.forget()
	}
	times := in.rows.Times
	i, j := in.next, in.next+1
	if alone && in.piece.distinct {
		for j < len(times) && times[j] < next {
			j++
		}
		if err := x.addText(in.rows, i, j, &in.remap); err != nil {
			return err
		}
	} else {
		for j < len(times) && times[j] == times[i] {
			j++
		}
		if j == i+1 && alone {
			if err := x.addText(in.rows, i, j, &in.remap); err != nil {
				return err
			}
		} else if whole, err := x.addDistinct(in, i, j); err != nil {
			return err
		} else if !whole {
			return x.takeTies(ctx, times[i])
		}
	}
	if in.next = j; j < len(times) {
		in.time = times[j]
		return nil
	}
	in.time = times[j-1]
	return in.advance()
}

// addDistinct adds the rows [i, j), which have one time, without duplicates. It returns false if there are
// too many to remember; m.ties then says which row is next.
func (x *Writer) addDistinct(in *mergeInput, i, j int) (whole bool, err error) {
	m, rows := &x.merge, in.rows
	if t := rows.Times[i]; !m.some || m.at != t {
		m.seen.reset()
		m.at, m.some, m.ties = t, true, 0
	}
	for k := i; k < j; k++ {
		if h := m.seen.hash(rows, k); !m.seen.has(h) {
			if len(m.seen.rows) >= x.w.Sizes.Ties {
				return false, nil
			}
			m.seen.add(h)
			if err := x.addText(rows, k, k+1, &in.remap); err != nil {
				return false, err
			}
		}
		m.ties++
	}
	return true, nil
}

// addText adds the rows [i, j), a page at a time.
func (x *Writer) addText(rows *model.TextRows, i, j int, remap *textRemap) error {
	for i < j {
		if rows.Times[i] < x.last {
			return column.Invalid("text of time %d after %d", rows.Times[i], x.last)
		}
		k, err := x.own.room(rows, i, j, &x.w.Sizes)
		if err != nil {
			return err
		}
		n := x.own.append(rows, i, k, remap)
		if n > 0 {
			x.countText(rows, i, i+n)
			x.last = rows.Times[i+n-1]
		}
		if i += n; i < j || x.own.full(&x.w.Sizes) {
			if err := x.writeOwn(x.own.cut(&x.w.Sizes)); err != nil {
				return err
			}
		}
	}
	return nil
}

// countText counts rows, and enters their windows.
func (x *Writer) countText(rows *model.TextRows, i, j int) {
	begin := rows.Begin
	if i > 0 {
		begin = rows.Ends[i-1]
	}
	x.countTimes(rows.Times[i:j], uint64(rows.Ends[j-1]-begin))
}

func (x *Writer) countTimes(times []int64, bytes uint64) {
	t := x.w.Tenant()
	t.Text += uint64(len(times))
	t.TextBytes += bytes
	x.w.AddTimes(times)
}

// canCopy reports whether a piece may be copied as it is stored: no row must be merged with it, and the piece
// and the rows that wait before it are large enough for units of their own.
func (x *Writer) canCopy(piece *Piece) bool {
	s := piece.stored
	if s == nil || s.e.Text.Bytes < uint64(finalBytes(&x.w.Sizes)) || s.e.Text.Filter.Len == 0 {
		return false
	}
	own := &x.own
	return own.empty() || own.size() >= finalBytes(&x.w.Sizes)
}
