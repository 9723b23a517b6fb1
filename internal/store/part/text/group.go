package text

import "github.com/shaledb/shale/internal/store/part/file"

// GroupBytes is the size at which a group of units is written, in stored bytes of their pages. A group of
// this size has about 30 units, so a query that counts rows reads the pages of rows of 30 units with one
// request. A larger group would take more memory of the writer.
const GroupBytes = 1 << 20

// maxWaitingEntries bounds the entries of units that wait for filters, of about 150 bytes each.
const maxWaitingEntries = 1 << 14

// group collects units whose pages are written together: the pages of rows, then the pages of lines. Filters
// wait longer, for those of several groups, so that many share a page and its slices, and a query that looks
// for a needle reads few of these.
type group struct {
	// rows and lines are the pages of the last units of entries. The addresses of these pages are offsets in
	// rows and lines until they are written.
	rows, lines []byte
	units       int
	// entries are those that are not in the index, because they wait for their pages or for their filters.
	entries []file.Entry
	// filters wait to be written. Each ends where ends says.
	filters []byte
	ends    []uint32
}

// add adds the pages of a unit in their stored form, and enters units in the index whose pages are written.
func (g *group) add(w *file.Writer, e file.Entry, rows, lines, filter []byte) error {
	e.Addr = file.Addr{Off: int64(len(g.rows)), Len: uint32(len(rows))}
	g.rows = append(g.rows, rows...)
	if e.Text.Bytes > 0 {
		e.Text.Lines = file.Addr{Off: int64(len(g.lines)), Len: uint32(len(lines))}
		g.lines = append(g.lines, lines...)
	}
	if len(filter) > 0 {
		e.Text.Filter.Len = 1 // until it is known
		g.filters = append(g.filters, filter...)
		g.ends = append(g.ends, uint32(len(g.filters)))
	}
	g.entries = append(g.entries, e)
	g.units++
	if len(g.rows)+len(g.lines) >= w.Sizes.GroupBytes {
		if err := g.writeUnits(w); err != nil {
			return err
		}
	}
	if len(g.filters) >= w.Sizes.FilterBytes || len(g.entries) >= maxWaitingEntries || g.units == 0 && len(g.ends) == 0 {
		return g.flush(w)
	}
	return nil
}

// writeUnits writes the pages of rows and of lines.
func (g *group) writeUnits(w *file.Writer) error {
	if g.units == 0 {
		return nil
	}
	rows, err := w.Stored(g.rows)
	if err != nil {
		return err
	}
	var lines file.Addr
	if len(g.lines) > 0 {
		if lines, err = w.Stored(g.lines); err != nil {
			return err
		}
	}
	for i := len(g.entries) - g.units; i < len(g.entries); i++ {
		e := &g.entries[i]
		e.Addr.Off += rows.Off
		if e.Text.Lines.Len > 0 {
			e.Text.Lines.Off += lines.Off
		}
	}
	g.rows, g.lines, g.units = g.rows[:0], g.lines[:0], 0
	return nil
}

// flush writes all that waits, and enters its units in the index.
func (g *group) flush(w *file.Writer) error {
	if err := g.writeUnits(w); err != nil {
		return err
	}
	next := 0 // of g.entries
	for from := 0; from < len(g.ends); {
		a, n, err := g.writeFilters(w, from)
		if err != nil {
			return err
		}
		to := from + n
		for number := uint32(0); from < to; next++ {
			if e := &g.entries[next]; e.Text.Filter.Len > 0 {
				e.Text.Filter, e.Text.Number = a, number
				number++
				from++
			}
		}
	}
	for i := range g.entries {
		if err := w.Enter(Section, g.entries[i]); err != nil {
			return err
		}
	}
	g.entries, g.filters, g.ends = g.entries[:0], g.filters[:0], g.ends[:0]
	return nil
}

// writeFilters writes a page of the filters from one on, with its slices, and returns its address and how
// many filters it has.
func (g *group) writeFilters(w *file.Writer, from int) (a file.Addr, n int, err error) {
	begin := uint32(0)
	if from > 0 {
		begin = g.ends[from-1]
	}
	n, slices := together(g.filters, begin, g.ends[from:], w.Sizes.SliceBytes)
	ends := g.ends[from : from+n]
	w.Payload = appendFilterPage(w.Payload[:0], g.filters, begin, ends, slices)
	a, err = w.Page(file.CodecNone)
	for i := 0; i < slices && err == nil; i++ {
		w.Payload = appendSlice(w.Payload[:0], g.filters, begin, ends, slices, i)
		_, err = w.Page(file.CodecNone)
	}
	return a, n, err
}
