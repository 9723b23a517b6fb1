package text

import (
	"context"
	"math"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/lines"
)

// Tally counts lines and verifies that none is stored twice.
type Tally struct {
	Rows, Bytes uint64
	Times       model.TimeRange
	seen        tieSet
}

// Add reads all lines of a series and returns their windows.
func (t *Tally) Add(ctx context.Context, text Series, w *file.Windows) (windows uint64, err error) {
	if text == nil {
		return 0, nil
	}
	var crowded []int64 // times of more rows than are remembered
	last := int64(math.MinInt64)
	run := text.Run(ctx, model.Always())
	for run.Next() {
		rows, err := run.Piece().Rows(ctx)
		if err != nil {
			return 0, err
		}
		for i, at := range rows.Times {
			if at < last {
				return 0, column.Corrupt("text of time %d after %d", at, last)
			}
			if at > last {
				t.seen.reset()
				last = at
			}
			if h := t.seen.hash(rows, i); t.seen.has(h) {
				return 0, twice(at)
			} else if len(t.seen.rows) < MaxTies {
				t.seen.add(h)
			} else if n := len(crowded); n == 0 || crowded[n-1] != at {
				crowded = append(crowded, at)
			}
			t.Bytes += uint64(len(rows.Line(i)))
		}
		t.Rows += uint64(len(rows.Times))
		t.Times.Min, t.Times.Max = min(t.Times.Min, rows.Times[0]), max(t.Times.Max, last)
		if w.Count > 0 {
			windows |= w.MaskOf(rows.Times)
		}
	}
	if err := run.Err(); err != nil {
		return 0, err
	}
	for _, at := range crowded {
		if err := t.checkTies(ctx, text, at, MaxTies); err != nil {
			return 0, err
		}
	}
	return windows, nil
}

func twice(at int64) error { return column.Corrupt("a line of time %d stands twice", at) }

// checkTies verifies that no two rows of one time are equal, however many they are: a walk for each block of
// them compares it with itself and with what follows.
func (t *Tally) checkTies(ctx context.Context, text Series, at int64, block int) error {
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

// Check verifies what the index says of units of text, since readers leave units out by it, and that filters
// have all items of the lines.
func Check(c *file.Checking) error {
	var u unit
	var items lines.Items
	var filters wholeFilters
	for i := range c.Entries[Section.Number] {
		e := &c.Entries[Section.Number][i]
		payload, err := c.Reader.Page(c.Ctx, e.Addr)
		if err != nil {
			return err
		}
		if err = u.decode(payload); err == nil {
			err = u.checkEntry(e)
		}
		if err != nil {
			return file.AtPage(e.Addr, err)
		}
		var lines []byte
		if e.Text.Lines.Len > 0 {
			if lines, err = c.Reader.Page(c.Ctx, e.Text.Lines); err != nil {
				return err
			}
		}
		if err := u.setLines(lines); err != nil {
			return file.AtPage(e.Addr, err)
		}
		if e.Text.Filter.Len == 0 {
			continue
		}
		filter, err := filters.read(c.Ctx, c.Reader.Pages(), e)
		if err != nil {
			return file.AtPage(e.Addr, err)
		}
		items.Reset()
		items.AddLines(lines, 0, u.ends)
		for _, l := range u.metadata {
			items.Metadata(l)
		}
		if err := items.CheckIn(filter); err != nil {
			return file.AtPage(e.Addr, err)
		}
	}
	return nil
}
