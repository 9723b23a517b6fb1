package text

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/lines"
)

// unitsAtOnce is the number of units that are coded in parallel. Coding is nearly all of the work of writing
// lines. The number does not depend on the number of cores, so the order of pages in a part does not, either.
const unitsAtOnce = 4

// codedUnit is a unit that is being written: first its rows, then its pages. The next unit reuses its memory.
type codedUnit struct {
	entry  file.Entry
	counts []int64
	// rows are views of what from holds.
	rows model.TextRows
	from rows

	coder unitCoder
	items lines.Items
	// payload is that of the page of rows; page, lines and filter are as they are stored.
	payload, page, lines, filter []byte
	err                          error
}

// codedUnits keep their memory between parts, of which most are small.
var codedUnits = sync.Pool{New: func() any { return &codedUnit{} }}

// releaseUnits releases the units that have been written.
func (x *Writer) releaseUnits() {
	for _, u := range x.units {
		if cap(u.from.Bytes) <= 4*UnitBytes {
			u.rows = model.TextRows{}
			codedUnits.Put(u)
		}
	}
	x.units = nil
}

// lineBytes are the bytes of all lines.
func (u *codedUnit) lineBytes() []byte {
	return u.rows.Bytes[u.rows.Begin:u.rows.Ends[len(u.rows.Ends)-1]]
}

// code makes the pages. A unit in its final form is compressed and has a filter. A small or shared unit has
// neither, as long as the part will be merged.
func (u *codedUnit) code(dense bool, rowsCodec byte, stays int) {
	u.coder.ints.Dense = dense
	u.payload = u.coder.append(u.payload[:0], u.counts, &u.rows)
	u.filter, u.lines = u.filter[:0], u.lines[:0]
	if len(u.payload) > file.MaxPageBytes {
		u.err = column.Invalid("page of %d bytes", len(u.payload))
		return
	}
	if u.page, u.err = file.SealPage(u.page[:0], u.payload, rowsCodec); u.err != nil {
		return
	}
	raw := u.lineBytes()
	if !dense && (len(u.counts) > 1 || len(raw) < stays) {
		u.lines, u.err = file.SealPage(u.lines, raw, file.CodecS2)
		return
	}
	u.items.Reset()
	u.lines, u.err = lines.Seal(u.lines, raw, u.rows.Begin, u.rows.Ends, &u.items)
	metadata := 0
	for _, l := range u.coder.used {
		u.items.Metadata(l)
		metadata += len(l)
	}
	u.filter = u.items.Append(u.filter, len(raw)+metadata)
}

// nextUnit returns a unit to fill, and adds it to those that wait for coding.
func (x *Writer) nextUnit() (*codedUnit, error) {
	if x.waiting == unitsAtOnce {
		if err := x.codeUnits(); err != nil {
			return nil, err
		}
	}
	if x.waiting == len(x.units) {
		x.units = append(x.units, codedUnits.Get().(*codedUnit))
	}
	x.waiting++
	return x.units[x.waiting-1], nil
}

// coders returns how many goroutines code a number of units.
func (x *Writer) coders(units int) int {
	workers := x.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	return min(units, workers)
}

// codeSome codes those of the units that no other goroutine codes. A panic is the error of its unit.
func (x *Writer) codeSome(units []*codedUnit, next *atomic.Int32) {
	for i := next.Add(1); int(i) <= len(units); i = next.Add(1) {
		u := units[i-1]
		if err := model.Caught(func() error { u.code(x.w.Dense(), x.w.TextCodec(), finalBytes(&x.w.Sizes)); return nil }); err != nil {
			u.err = err
		}
	}
}

// codeUnits codes the units that wait, and writes them in their order.
func (x *Writer) codeUnits() error {
	units := x.units[:x.waiting]
	x.waiting = 0
	var next atomic.Int32
	var others sync.WaitGroup
	for range x.coders(len(units)) - 1 {
		others.Go(func() { x.codeSome(units, &next) })
	}
	x.codeSome(units, &next)
	others.Wait()
	for _, u := range units {
		if u.err != nil {
			model.PanicAgain(u.err) // the caller decides what becomes of it
			return u.err
		}
		if err := x.group.add(x.w, u.entry, u.page, u.lines, u.filter); err != nil {
			return err
		}
		u.from.reset()
	}
	return nil
}
