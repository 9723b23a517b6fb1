package part

import (
	"context"
	"math"

	"github.com/shaledb/shale/internal/model"
)

// addText reads all lines of a series and returns their windows.
func (t *tally) addText(ctx context.Context, text Text, w Windows) (windows uint64, err error) {
	if text == nil {
		return 0, nil
	}
	if t.seen == nil {
		t.seen = make(map[string]struct{})
	}
	clear(t.seen)
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
				clear(t.seen)
				last = at
			}
			row := string(rows.MetadataAt(i)) + "\x00" + string(rows.Line(i))
			if _, twice := t.seen[row]; twice {
				return 0, corrupt("a line of time %d stands twice", at)
			}
			t.seen[row] = struct{}{}
			t.textBytes += uint64(len(rows.Line(i)))
		}
		t.text += uint64(len(rows.Times))
		t.times.Min, t.times.Max = min(t.times.Min, rows.Times[0]), max(t.times.Max, last)
		if w.Count > 0 {
			windows |= w.of(rows.Times)
		}
	}
	return windows, run.Err()
}

// text verifies what the index says of units of text, since readers leave units out by it, and that filters have all items of
// the lines.
func (c *checker) text() error {
	var u textUnit
	var coder fieldCoder
	var items filterItems
	var filters filterPage
	for i := range c.entries[textSection] {
		e := &c.entries[textSection][i]
		payload, err := c.r.pages.Page(c.ctx, e.addr)
		if err != nil {
			return err
		}
		if err = u.open(payload); err == nil {
			err = u.is(e)
		}
		if err != nil {
			return at(e, err)
		}
		if e.text.bytes > 0 != (e.text.lines > 0) {
			return at(e, corrupt("%d bytes of lines in a page of %d", e.text.bytes, e.text.lines))
		}
		var lines []byte
		if e.text.lines > 0 {
			if lines, err = c.r.pages.Page(c.ctx, e.linesAddr()); err != nil {
				return err
			}
		}
		if err := u.setLines(lines); err != nil {
			return at(e, err)
		}
		if e.text.filter.Len == 0 {
			continue
		}
		if payload, err = c.r.pages.Page(c.ctx, e.text.filter); err != nil {
			return err
		}
		var filter []byte
		if err = filters.open(payload); err == nil {
			filter, err = filters.at(e.text.number)
		}
		if err != nil {
			return at(e, err)
		}
		items.reset()
		coder.gather(lines, 0, u.ends, &items)
		for _, l := range u.metadata {
			items.metadata(l)
		}
		if err := items.in(filter); err != nil {
			return at(e, err)
		}
	}
	return nil
}
