package part

import (
	"slices"

	"github.com/shaledb/shale/internal/model"
)

// textRows are rows that grow, with each set of metadata once.
type textRows struct {
	model.TextRows
	ids   map[string]uint32
	names map[string]struct{}
	bytes []byte // of the metadata
	// generation changes whenever sets are forgotten.
	generation uint64
}

// textRemap says where the sets of one place are in another.
type textRemap struct {
	ids        []uint32
	generation uint64
}

func (r *textRows) empty() bool { return len(r.Times) == 0 }

// size is about what the rows take in memory, and decides about where units end.
func (r *textRows) size() int { return len(r.Bytes) + len(r.bytes) }

// reset forgets all rows.
func (r *textRows) reset() {
	r.Times, r.Ends, r.MetadataOf, r.Metadata = r.Times[:0], r.Ends[:0], r.MetadataOf[:0], r.Metadata[:0]
	r.Bytes, r.Begin = r.Bytes[:0], 0
	clear(r.ids)
	clear(r.names)
	r.bytes = r.bytes[:0]
	r.generation++
}

// intern returns the number of a set, plus 1; or 0 if it has to wait for the next unit, since its columns would have too many
// cells.
func (r *textRows) intern(l model.Labels) uint32 {
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
	if n > 0 && (n+1)*(len(r.names)+unknown) > maxTextCells {
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
func (r *textRows) append(src *model.TextRows, i, j int, m *textRemap) int {
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
func (r *textRows) appendMetadata(src *model.TextRows, i, j int, m *textRemap) int {
	if m.generation != r.generation || len(m.ids) != len(src.Metadata) {
		m.ids = grow(m.ids[:0], len(src.Metadata))
		clear(m.ids)
		m.generation = r.generation
	}
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

func (r *textRows) padMetadata(n int) {
	for len(r.MetadataOf) < n {
		r.MetadataOf = append(r.MetadataOf, 0)
	}
}

// full reports whether rows must go into a unit before more are added.
func (r *textRows) full(z *sizes) bool {
	return r.size() >= 2*z.text || len(r.Times) >= z.textRows
}

// cut returns how many rows make a page.
func (r *textRows) cut(z *sizes) int {
	if r.size() < 2*z.text {
		return len(r.Times)
	}
	return r.upTo(int64(len(r.Bytes)) * int64(z.text) / int64(r.size()))
}

// upTo returns how many rows, at least one, have about so many bytes of lines.
func (r *textRows) upTo(bytes int64) int {
	n, _ := slices.BinarySearch(r.Ends, uint32(bytes))
	return min(n+1, len(r.Times))
}

// fits reports whether the rows of another series may join these in a unit.
func (r *textRows) fits(o *textRows, z *sizes) bool {
	return r.size()+o.size() <= z.text*5/4 && len(r.Times)+len(o.Times) <= z.textRows &&
		(len(r.Metadata)+len(o.Metadata))*(len(r.names)+len(o.names)) <= maxTextCells
}

// room returns up to where the rows [i, j) of src may be added before a unit must be written: one at least.
func (r *textRows) room(src *model.TextRows, i, j int, z *sizes) (int, error) {
	size := r.size()
	for k := i; k < j; k++ {
		if k > i && (size >= 2*z.text || len(r.Times)+k-i >= z.textRows) {
			return k, nil
		}
		n := len(src.Line(k))
		if n > maxLineBytes {
			return k, invalid("time %d: a line of %d bytes; the most is %d", src.Times[k], n, maxLineBytes)
		}
		if md := src.MetadataAt(k); len(md) > 0 {
			if len(md) > model.MaxLabelBytes {
				return k, invalid("time %d: metadata of %d bytes; the most is %d", src.Times[k], len(md), model.MaxLabelBytes)
			}
			n += len(md)
		}
		size += n
	}
	return j, nil
}
