package text

import (
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
)

// rows is a growing list of rows, with each set of metadata once.
type rows struct {
	model.TextRows
	ids   map[string]uint32
	names map[string]struct{}
	bytes []byte // of the metadata
	// mostIDs and mostNames are how many there have been: see emptied.
	mostIDs, mostNames int
	// generation changes whenever sets are forgotten.
	generation uint64
}

// textRemap maps the numbers of the sets of the source to those of the destination of rows. A caller that
// begins to read from another source calls forget. That the destination has forgotten its sets shows in its
// generation.
type textRemap struct {
	ids        []uint32
	generation uint64
	valid      bool
}

// forget makes it valid for no place.
func (m *textRemap) forget() { m.valid = false }

// prepare makes it valid for n sets that go to r.
func (m *textRemap) prepare(r *rows, n int) {
	if m.valid && m.generation == r.generation && len(m.ids) == n {
		return
	}
	m.ids = column.Grow(m.ids[:0], n)
	clear(m.ids)
	m.generation, m.valid = r.generation, true
}

func (r *rows) empty() bool { return len(r.Times) == 0 }

// size is about what the rows take in memory, and decides about where units end.
func (r *rows) size() int { return len(r.Bytes) + len(r.bytes) }

// reset forgets all rows.
func (r *rows) reset() {
	r.Times, r.Ends, r.MetadataOf, r.Metadata = r.Times[:0], r.Ends[:0], r.MetadataOf[:0], r.Metadata[:0]
	r.Bytes, r.Begin = r.Bytes[:0], 0
	r.ids, r.names = emptied(r.ids, &r.mostIDs), emptied(r.names, &r.mostNames)
	r.bytes = r.bytes[:0]
	r.generation++
}

// emptied returns a map without its entries. One that has been much larger, at most entries, is given up: it
// would never free its memory, and clearing it takes as long as if it were full.
func emptied[K comparable, V any](m map[K]V, most *int) map[K]V {
	if *most = max(*most, len(m)); *most > 1024 && len(m) < *most/16 {
		*most = 0
		return make(map[K]V)
	}
	clear(m)
	return m
}

// intern returns the number of a set, plus 1; or 0 if it has to wait for the next unit, since that would have
// too many names, or its columns too many cells.
func (r *rows) intern(l model.Labels) uint32 {
	if id, ok := r.ids[string(l)]; ok {
		return id
	}
	if r.ids == nil {
		r.ids, r.names = make(map[string]uint32), make(map[string]struct{})
	}
	unknown := 0
	for name, _, rest, ok := l.Next(); ok; name, _, rest, ok = rest.Next() {
		if _, known := r.names[string(name)]; !known {
			unknown++
		}
	}
	n := len(r.Metadata)
	if names := len(r.names) + unknown; n > 0 && (names > maxTextNames || (n+1)*names > maxTextCells) {
		return 0
	}
	if unknown > 0 {
		for name, _, rest, ok := l.Next(); ok; name, _, rest, ok = rest.Next() {
			r.names[string(name)] = struct{}{}
		}
	}
	at := len(r.bytes)
	r.bytes = append(r.bytes, l...)
	r.Metadata = append(r.Metadata, model.Labels(r.bytes[at:len(r.bytes):len(r.bytes)]))
	r.ids[string(l)] = uint32(n + 1)
	return uint32(n + 1)
}

// append adds the rows [i, j) of src, or as many of them as their metadata allows, and returns how many.
func (r *rows) append(src *model.TextRows, i, j int, m *textRemap) int {
	if len(src.MetadataOf) > 0 {
		j = i + r.appendMetadata(src, i, j, m)
	}
	if i == j {
		return 0
	}
	begin := src.Begin
	if i > 0 {
		begin = src.Ends[i-1]
	}
	shift := uint32(len(r.Bytes)) - begin
	r.Bytes = append(r.Bytes, src.Bytes[begin:src.Ends[j-1]]...)
	r.Times = append(r.Times, src.Times[i:j]...)
	at := len(r.Ends)
	r.Ends = append(r.Ends, src.Ends[i:j]...)
	if shift != 0 {
		for k := range r.Ends[at:] {
			r.Ends[at+k] += shift
		}
	}
	if len(r.MetadataOf) > 0 {
		r.padMetadata(len(r.Times))
	}
	return j - i
}

// appendMetadata adds references to sets, and returns for how many rows there was room.
func (r *rows) appendMetadata(src *model.TextRows, i, j int, m *textRemap) int {
	m.prepare(r, len(src.Metadata))
	for k, id := range src.MetadataOf[i:j] {
		if id == 0 {
			continue
		}
		if m.ids[id-1] == 0 {
			if m.ids[id-1] = r.intern(src.Metadata[id-1]); m.ids[id-1] == 0 {
				return k
			}
		}
		r.padMetadata(len(r.Times) + k)
		r.MetadataOf = append(r.MetadataOf, m.ids[id-1])
	}
	return j - i
}

func (r *rows) padMetadata(n int) {
	for len(r.MetadataOf) < n {
		r.MetadataOf = append(r.MetadataOf, 0)
	}
}

// full reports whether rows must go into a unit before more are added.
func (r *rows) full(z *file.Sizes) bool {
	return r.size() >= 2*z.TextBytes || len(r.Times) >= z.TextRows
}

// cut returns how many rows make a page.
func (r *rows) cut(z *file.Sizes) int {
	if r.size() < 2*z.TextBytes {
		return len(r.Times)
	}
	return r.share(z.TextBytes)
}

// share returns how many rows, at least one, have about so many bytes of lines and metadata together, each
// set counted with the first row that has it. Counting lines alone cuts off next to nothing where lines are
// empty, and then writes a unit for each further row.
func (r *rows) share(bytes int) int {
	first, metadata := uint32(0), 0
	for i, end := range r.Ends {
		// Sets are numbered as rows need them.
		if len(r.MetadataOf) > 0 && r.MetadataOf[i] > first {
			first = r.MetadataOf[i]
			metadata += len(r.Metadata[first-1])
		}
		if int(end)+metadata >= bytes {
			return i + 1
		}
	}
	return len(r.Ends)
}

// fits reports whether the rows of another series may join these in a unit.
func (r *rows) fits(o *rows, z *file.Sizes) bool {
	return r.size()+o.size() <= z.TextBytes*5/4 && len(r.Times)+len(o.Times) <= z.TextRows &&
		len(r.names)+len(o.names) <= maxTextNames && (len(r.Metadata)+len(o.Metadata))*(len(r.names)+len(o.names)) <= maxTextCells
}

// room returns up to where the rows [i, j) of src may be added before a unit must be written: one at least.
func (r *rows) room(src *model.TextRows, i, j int, z *file.Sizes) (int, error) {
	size := r.size()
	for k := i; k < j; k++ {
		if k > i && (size >= 2*z.TextBytes || len(r.Times)+k-i >= z.TextRows) {
			return k, nil
		}
		n := len(src.Line(k))
		if n > MaxLineBytes {
			return k, column.Invalid("time %d: a line of %d bytes; the most is %d", src.Times[k], n, MaxLineBytes)
		}
		if md := src.MetadataAt(k); len(md) > 0 {
			if len(md) > model.MaxLabelBytes {
				return k, column.Invalid("time %d: metadata of %d bytes; the most is %d", src.Times[k], len(md), model.MaxLabelBytes)
			}
			n += len(md)
		}
		size += n
	}
	return j, nil
}
