package rows

import (
	"fmt"
	"unsafe"

	"github.com/shaledb/shale/internal/model"
)

// keepFirst removes repeated lines and keeps the first of each. Text needs this here, since a query reads
// some rows of a run without the others.
func (r *FamilyRows) keepFirst(b Blobs) {
	out, group := 0, 0 // rows [group, out) have the key and the time of row i
	var seen map[string]struct{}
	for i := range r.Keys {
		if i > 0 && (r.Times[i] != r.Times[i-1] || r.Keys[i] != r.Keys[i-1]) {
			group, seen = out, nil
		}
		if group < out && r.isAmong(group, out, i, b, &seen) {
			continue
		}
		if out != i {
			r.Keys[out], r.Times[out], r.Values[out] = r.Keys[i], r.Times[i], r.Values[i]
		}
		out++
	}
	r.Keys, r.Times, r.Values, r.kinds = r.Keys[:out], r.Times[:out], r.Values[:out], r.kinds[:out]
}

// fewEqual is how many rows with one time are compared one by one. More are looked up in a table.
const fewEqual = 16

// isAmong reports whether row i is one of the rows [from, to), using a table once they are many.
func (r *FamilyRows) isAmong(from, to, i int, b Blobs, table *map[string]struct{}) bool {
	line := b.Blob(r.Values[i])
	if to-from < fewEqual {
		for j := from; j < to; j++ {
			if string(b.Blob(r.Values[j])) == string(line) {
				return true
			}
		}
		return false
	}
	if *table == nil {
		*table = make(map[string]struct{}, 4*fewEqual)
		for j := from; j < to; j++ {
			(*table)[viewOf(b.Blob(r.Values[j]))] = struct{}{}
		}
	}
	if _, found := (*table)[viewOf(line)]; found {
		return true
	}
	(*table)[viewOf(line)] = struct{}{}
	return false
}

// viewOf returns a string that aliases bytes which do not change, such as those of sealed blobs.
func viewOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// Gatherer copies the scattered lines of a run next to each other.
type Gatherer struct {
	sets map[string]uint32
	last uint32 // number of the set that the last line had
}

// LineBytes is an upper bound of the bytes that the lines of rows [from, to) take when they are gathered.
func (r *FamilyRows) LineBytes(from, to int) (n int) {
	for _, ref := range r.Values[from:to] {
		n += int(ref & (1<<blobLengthBits - 1))
	}
	return n
}

// Gather fills dst with the rows [from, to), which belong to one series. Lines go to buf, which has room for
// them. Metadata aliases the run's blobs.
func (g *Gatherer) Gather(dst *model.TextRows, r *FamilyRows, from, to int, b Blobs, want model.TextWant, buf []byte) error {
	dst.Reset()
	dst.Times = append(dst.Times, r.Times[from:to]...)
	if want&^model.WantNoMore == 0 {
		return nil
	}
	clear(g.sets)
	g.last = 0
	end := len(buf)
	dst.Begin = uint32(end)
	for i := from; i < to; i++ {
		l, err := model.SplitLine(b.Blob(r.Values[i]))
		if err != nil {
			return fmt.Errorf("series %s: %w", r.Keys[i], err) // a bug: Resolve has looked
		}
		if want&model.WantLines != 0 {
			buf = append(buf, l.Text...)
		}
		if want&(model.WantLines|model.WantLengths) != 0 {
			end += len(l.Text)
			dst.Ends = append(dst.Ends, uint32(end))
		}
		if want&model.WantMetadata != 0 && (len(l.Metadata) > 0 || len(dst.MetadataOf) > 0) {
			for len(dst.MetadataOf) < i-from {
				dst.MetadataOf = append(dst.MetadataOf, 0)
			}
			dst.MetadataOf = append(dst.MetadataOf, g.number(dst, l.Metadata))
		}
	}
	dst.Bytes = buf
	return nil
}

// number returns the index of a metadata set in dst plus 1, or 0 for an empty set.
func (g *Gatherer) number(dst *model.TextRows, l model.Labels) uint32 {
	switch {
	case len(l) == 0:
		return 0
	case g.last > 0 && string(dst.Metadata[g.last-1]) == string(l):
		return g.last
	}
	n, known := g.sets[viewOf(l)]
	if !known {
		if g.sets == nil {
			g.sets = make(map[string]uint32)
		}
		dst.Metadata = append(dst.Metadata, l)
		n = uint32(len(dst.Metadata))
		g.sets[viewOf(l)] = n
	}
	g.last = n
	return n
}
