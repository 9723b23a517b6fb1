package part

import (
	"context"
	"math"

	"github.com/shaledb/shale/internal/model"
)

// textTally counts lines and verifies that none stands twice.
type textTally struct {
	rows, bytes uint64
	times       model.TimeRange
	seen        tieSet
}

// add reads all lines of a series and returns their windows.
func (t *textTally) add(ctx context.Context, text Text, w *Windows) (windows uint64, err error) {
	if text == nil {
		return 0, nil
	}
	var crowded []int64 // times of more rows than are remembered
	last := int64(math.MinInt64)
	run := text.Run(ctx, model.TimeRange{Min: math.MinInt64, Max: math.MaxInt64})
	for run.Next() {
		rows, err := run.Piece().Rows(ctx)
		if err != nil {
			return 0, err
		}
		for i, at := range rows.Times {
			if at < last {
				return 0, corrupt("text of time %d after %d", at, last)
			}
			if at > last {
				t.seen.reset()
				last = at
			}
			if h := t.seen.hash(rows, i); t.seen.has(h) {
				return 0, twice(at)
			} else if len(t.seen.rows) < maxTies {
				t.seen.add(h)
			} else if n := len(crowded); n == 0 || crowded[n-1] != at {
				crowded = append(crowded, at)
			}
			t.bytes += uint64(len(rows.Line(i)))
		}
		t.rows += uint64(len(rows.Times))
		t.times.Min, t.times.Max = min(t.times.Min, rows.Times[0]), max(t.times.Max, last)
		if w.Count > 0 {
			windows |= w.of(rows.Times)
		}
	}
	if err := run.Err(); err != nil {
		return 0, err
	}
	for _, at := range crowded {
		if err := t.checkTies(ctx, text, at, maxTies); err != nil {
			return 0, err
		}
	}
	return windows, nil
}

func twice(at int64) error { return corrupt("a line of time %d stands twice", at) }

// checkTies verifies that no two rows of one time are equal, however many they are: a walk for each block of them compares it
// with itself and with what comes behind it.
func (t *textTally) checkTies(ctx context.Context, text Text, at int64, block int) error {
	for from, more := 0, true; more; from += block {
		t.seen.reset()
		more = false
		i := 0
		_, err := eachTie(ctx, text, at, func(rows *model.TextRows, k int) (bool, error) {
			if i++; i <= from {
				return true, nil
			}
			h := t.seen.hash(rows, k)
			if t.seen.has(h) {
				return false, twice(at)
			}
			if more = i > from+block; !more {
				t.seen.add(h)
			}
			return true, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// checkUnits verifies what the index says of units of text, since readers leave units out by it, and that filters have all items of
// the lines.
func checkUnits(c *checking) error {
	var u textUnit
	var coder fieldCoder
	var items filterItems
	var filters wholeFilters
	for i := range c.entries[textSection.number] {
		e := &c.entries[textSection.number][i]
		payload, err := c.r.Page(c.ctx, e.addr)
		if err != nil {
			return err
		}
		if err = u.open(payload); err == nil {
			err = u.is(e)
		}
		if err != nil {
			return atPage(e.addr, err)
		}
		if e.text.bytes > 0 != (e.text.lines > 0) {
			return atPage(e.addr, corrupt("%d bytes of lines in a page of %d", e.text.bytes, e.text.lines))
		}
		var lines []byte
		if e.text.lines > 0 {
			if lines, err = c.r.Page(c.ctx, e.linesAddr()); err != nil {
				return err
			}
		}
		if err := u.setLines(lines); err != nil {
			return atPage(e.addr, err)
		}
		if e.text.filter.Len == 0 {
			continue
		}
		filter, err := filters.of(c.ctx, c.r.Pages(), e)
		if err != nil {
			return atPage(e.addr, err)
		}
		items.reset()
		coder.gather(lines, 0, u.ends, &items)
		for _, l := range u.metadata {
			items.metadata(l)
		}
		if err := items.in(filter); err != nil {
			return atPage(e.addr, err)
		}
	}
	return nil
}
