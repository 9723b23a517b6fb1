package read

import (
	"context"
	"hash/maphash"
	"slices"

	"github.com/shaledb/shale/internal/model"
)

// textTie is a time at which several lanes have rows. What is equal counts in the lane of the lowest order.
type textTie struct {
	time  int64
	lanes []int // that are left, in the direction of the walk; nil: no tie
	owner map[rowSum]int
	seeds [2]maphash.Seed
	held  int64 // bytes of quota
	// look has the rows of chunks that are only looked at.
	look model.TextRows
}

// rowSum stands for line and metadata of a row. 128 bits under random seeds are the same for different rows with odds that
// nobody can better and nobody will meet.
type rowSum struct {
	line, meta, both uint64
}

func (t *textTie) sum(r *model.TextRows, i int) rowSum {
	line, meta := r.Line(i), r.MetadataAt(i)
	s := rowSum{line: maphash.Bytes(t.seeds[0], line), both: maphash.Bytes(t.seeds[1], line)}
	if len(meta) > 0 {
		s.meta = maphash.Bytes(t.seeds[0], meta)
	}
	return s
}

// rowSumBytes is about what an entry of the table takes.
const rowSumBytes = 64

func (t *textTie) begin(w *TextWalk, at int64) {
	t.time = at
	if t.owner == nil {
		t.owner = make(map[rowSum]int)
		t.seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
	}
	t.lanes = make([]int, 0, len(w.lanes))
	for i, l := range w.lanes {
		if len(l.chunks) > 0 && w.near(l) == at {
			t.lanes = append(t.lanes, i)
		}
	}
}

// own enters the rows of all lanes but the last at the time of the tie.
func (w *TextWalk) own(ctx context.Context) error {
	t := &w.tie
	enter := func(lane int, rows *model.TextRows, from, to int) error {
		for i := from; i < to; i++ {
			s := t.sum(rows, i)
			if _, known := t.owner[s]; !known {
				t.owner[s] = lane
			}
		}
		more := int64(len(t.owner))*rowSumBytes - t.held
		if w.o.Quota == nil || more <= 0 {
			return nil
		}
		if err := w.o.Quota.TakeBytes(more); err != nil {
			return err
		}
		t.held += more
		return nil
	}
	for _, lane := range t.lanes[:len(t.lanes)-1] {
		l := w.lanes[lane]
		from, to := l.tied(t.time)
		if err := enter(lane, &l.rows, from, to); err != nil {
			return err
		}
		for i := 1; i < len(l.chunks) && l.chunks[i].Contains(t.time); i++ {
			if err := w.read(ctx, l, i, &t.look); err != nil {
				return err
			}
			from, to := within(t.look.Times, model.TimeRange{Min: t.time, Max: t.time})
			if err := enter(lane, &t.look, from, to); err != nil {
				return err
			}
		}
	}
	t.look.Reset()
	return nil
}

// tied returns which of the rows that are left of the open chunk have a time.
func (l *textLane) tied(at int64) (from, to int) {
	from, to = within(l.rows.Times[l.at:l.end], model.TimeRange{Min: at, Max: at})
	return l.at + from, l.at + to
}

// nextTied hands out the next stretch of a tie, and reports whether there is one.
func (w *TextWalk) nextTied(ctx context.Context) bool {
	t := &w.tie
	// All lanes of the tie are open here, but those that go on in another chunk at the same time.
	if t.held == 0 && len(t.owner) == 0 {
		if w.err = w.own(ctx); w.err != nil {
			return false
		}
		if w.o.Backward {
			slices.Reverse(t.lanes)
		}
	}
	for len(t.lanes) > 0 {
		lane := t.lanes[0]
		l := w.lanes[lane]
		if len(l.chunks) > 0 && !l.open && w.near(l) == t.time {
			if w.err = w.open(ctx, l); w.err != nil {
				return false
			}
			continue
		}
		if len(l.chunks) == 0 || !l.open || w.near(l) != t.time {
			t.lanes = t.lanes[1:]
			continue
		}
		if w.tiedStretch(l, lane) {
			return true
		}
	}
	w.endTie()
	return false
}

// tiedStretch takes the next rows of a lane that are its own, and passes over those that another one has.
func (w *TextWalk) tiedStretch(l *textLane, lane int) bool {
	t := &w.tie
	from, to := l.tied(t.time)
	mine := func(i int) bool {
		owner, known := t.owner[t.sum(&l.rows, i)]
		return !known || owner == lane
	}
	if w.o.Backward {
		for to > from && !mine(to-1) {
			to--
		}
		begin := to
		for begin > from && mine(begin-1) {
			begin--
		}
		w.rows, w.from, w.to = &l.rows, begin, to
		l.end = begin
	} else {
		for from < to && !mine(from) {
			from++
		}
		end := from
		for end < to && mine(end) {
			end++
		}
		w.rows, w.from, w.to = &l.rows, from, end
		l.at = end
	}
	w.leave(l)
	return w.from < w.to
}

func (w *TextWalk) endTie() {
	t := &w.tie
	clear(t.owner)
	t.lanes = nil
	if w.o.Quota != nil && t.held > 0 {
		_ = w.o.Quota.TakeBytes(-t.held) // giving back does not fail
	}
	t.held = 0
}
