package text

import (
	"math"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
)

// Section holds lines of logs, in units: a page of all but the lines, a page of lines, and a filter.
var Section = &file.Section{Number: 5, Kind: file.RowKind, Family: byte(model.Text), Name: "text", Form: file.UnitEntries}

// Writer collects text. A series either has its own units, of a quarter of a page to one and a half, or
// shares one with its neighbours.
type Writer struct {
	w *file.Writer
	// Workers is how many units are coded at one time at most; 0: as many as Go has threads.
	Workers int
	// units are coded side by side; the first of them are waiting for it.
	units   []*codedUnit
	waiting int

	// own are the rows of the current series that are in no unit yet. It has units of its own if pages > 0.
	own   rows
	pages int
	// last is the time of its last row.
	last int64
	// shared are the rows of the series before it, from rank0 on, that are in no unit yet.
	shared rows
	rank0  uint32
	counts []int64

	remap textRemap
	merge merge
	group group
	// rows and lines are buffers for the pages of a unit that is copied.
	rows, lines []byte
}

// NewWriter returns the writer of text of a file.
func NewWriter(w *file.Writer) *Writer { return &Writer{w: w, last: math.MinInt64} }

// Hooks returns what the container calls.
func (x *Writer) Hooks() file.Hooks {
	return file.Hooks{EndSeries: x.endText, EndTenant: x.flushText, Release: x.releaseUnits}
}

// finalBytes is the size, in bytes of lines, from which a unit is coded in its final form immediately and
// only copied later: a quarter of a page. A larger limit costs time, because smaller units are coded twice,
// and a smaller one costs space on disk. BenchmarkTextMergeSmall of package part measures the time.
func finalBytes(z *file.Sizes) int { return z.TextBytes / 4 }

// writeOwn makes a unit of the first n rows of the current series.
func (x *Writer) writeOwn(n int) error {
	if err := x.flushShared(); err != nil {
		return err
	}
	u, err := x.nextUnit()
	if err != nil {
		return err
	}
	ViewRows(&u.rows, &x.own.TextRows, 0, n)
	u.counts = append(u.counts[:0], int64(n))
	u.setEntry(x.w.Rank())
	x.pages++
	// What is left changes places with what is empty.
	x.remap.forget()
	if left := len(x.own.Times) - n; u.from.append(&x.own.TextRows, n, len(x.own.Times), &x.remap) != left {
		return column.Invalid("text: %d rows have more metadata than a unit may have", left)
	}
	x.own, u.from = u.from, x.own
	x.own.generation = max(x.own.generation, u.from.generation) + 1
	return nil
}

// endText ends the text of the current series. What is left of one that has units of its own becomes one or
// two more, of about a page. A series has its own as soon as one can be copied from then on: each merge codes
// shared units a second time.
func (x *Writer) endText() error {
	x.last = math.MinInt64
	if x.own.empty() {
		x.pages = 0
		return nil
	}
	if x.pages > 0 || x.own.size() >= finalBytes(&x.w.Sizes) {
		for !x.own.empty() {
			n := len(x.own.Times)
			if x.own.size() > x.w.Sizes.TextBytes*3/2 {
				n = x.own.share(x.own.size() / 2)
			}
			if err := x.writeOwn(n); err != nil {
				return err
			}
		}
		x.pages = 0
		return nil
	}
	if !x.shared.empty() && (x.w.Rank()-x.rank0 >= file.MaxPageRanks || !x.shared.fits(&x.own, &x.w.Sizes)) {
		if err := x.flushShared(); err != nil {
			return err
		}
	}
	if x.shared.empty() {
		x.rank0, x.counts = x.w.Rank(), x.counts[:0]
	}
	for uint32(len(x.counts)) < x.w.Rank()-x.rank0 {
		x.counts = append(x.counts, 0)
	}
	x.counts = append(x.counts, int64(len(x.own.Times)))
	x.remap.forget()
	if n := len(x.own.Times); x.shared.append(&x.own.TextRows, 0, n, &x.remap) != n {
		return column.Invalid("text: %d rows have more metadata than a unit may have", n)
	}
	x.own.reset()
	if x.shared.size() >= x.w.Sizes.TextBytes {
		return x.flushShared()
	}
	return nil
}

// flushShared makes a unit of the rows of the series before the current one.
func (x *Writer) flushShared() error {
	if x.shared.empty() {
		return nil
	}
	u, err := x.nextUnit()
	if err != nil {
		return err
	}
	u.rows = x.shared.TextRows
	u.counts, x.counts = x.counts, u.counts[:0]
	u.setEntry(x.rank0)
	x.shared, u.from = u.from, x.shared
	return nil
}

// setEntry says which rows the unit has: of consecutive ranks, from rank0 on.
func (u *codedUnit) setEntry(rank0 uint32) {
	e := file.Entry{Rank0: rank0, Ranks: uint32(len(u.counts)), Rows: uint64(len(u.rows.Times)), Times: file.NoTimes}
	for _, t := range u.rows.Times {
		e.Times.Min, e.Times.Max = min(e.Times.Min, t), max(e.Times.Max, t)
	}
	e.Text.Bytes = uint64(len(u.lineBytes()))
	u.entry = e
}

// flushText writes what is left of the text of the tenant.
func (x *Writer) flushText() error {
	if err := x.endText(); err != nil {
		return err
	}
	if err := x.flushShared(); err != nil {
		return err
	}
	if err := x.codeUnits(); err != nil {
		return err
	}
	return x.group.flush(x.w)
}
