package lines

import (
	"encoding/binary"
	"math"

	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
)

const (
	// filterShare is the most that a filter may take of its unit's lines and metadata, in thousandths.
	filterShare     = 19
	maxFilterHashes = 16

	// FilterParts is the number of parts into which the bits of a class are divided. Each item lies in one
	// part, so that a search for one item reads one part of each of many filters (see filterPage in package
	// text). Classes smaller than minPart bytes per part are not divided: items fall into parts by chance, and
	// some small parts would be full.
	FilterParts = 64
	minPart     = 8
)

// PartsOf returns the number of parts of a class of so many bytes.
func PartsOf(bytes int) int {
	if bytes < FilterParts*minPart {
		return 1
	}
	return FilterParts
}

// PartOf returns the part of an item among FilterParts. It uses other bits of the hash than the first
// position within the part.
func PartOf(item uint64) int { return int(item >> 33 % FilterParts) }

// ItemBits is the most bits per item, by class. Words are few and rule out much; runs are many and seldom
// help.
var ItemBits = [ItemClasses]int{ItemWords: 16, itemLong: 8, itemRuns: 4, itemPairs: 8, itemMetadata: 10}

// Append appends the filter of lines that take so many bytes with their metadata: the classes that it has,
// the number of hashes and the length of each, and the bits of each. If nothing fits, it appends nothing.
func (s *Items) Append(dst []byte, bytes int) []byte {
	const headBytes = 1 + 4*int(ItemClasses)
	most := 8 * (bytes*filterShare/1000 - headBytes)
	var want [ItemClasses]int // bits
	total := 0
	for class := range ItemClasses {
		want[class] = len(s.Lists[class]) * ItemBits[class]
		total += want[class]
	}
	classes := byte(1<<ItemClasses - 1)
	for total > 0 && total > 2*most {
		// With less than half of their bits, items are not worth storing: runs go first, then the largest class.
		largest := itemRuns
		for class, n := range want {
			if want[itemRuns] == 0 && n > want[largest] {
				largest = byte(class)
			}
		}
		classes &^= 1 << largest
		total -= want[largest]
		want[largest] = 0
	}
	if classes == 0 || most <= 0 {
		return dst
	}
	dst = append(dst, classes)
	var hashes [ItemClasses]int
	for class := range ItemClasses {
		if classes>>class&1 == 0 {
			continue
		}
		if total > most {
			want[class] = int(int64(want[class]) * int64(most) / int64(total))
		}
		if want[class] = (want[class] + 7) / 8; PartsOf(want[class]) > 1 {
			want[class] -= want[class] % FilterParts
		}
		hashes[class] = 1
		if n := len(s.Lists[class]); n > 0 {
			// ln 2 hashes per bit give the fewest false positives.
			hashes[class] = min(max(int(math.Round(float64(8*want[class])/float64(n)*math.Ln2)), 1), maxFilterHashes)
		}
		dst = binary.AppendUvarint(append(dst, byte(hashes[class])), uint64(want[class]))
	}
	for class := range ItemClasses {
		at := len(dst)
		dst = append(dst, make([]byte, want[class])...)
		if want[class] > 0 {
			setItems(dst[at:], s.Lists[class], hashes[class])
		}
	}
	return dst
}

// setItems sets the bits of items of a class.
func setItems(bits []byte, items []uint64, hashes int) {
	parts := PartsOf(len(bits))
	size := len(bits) / parts
	for _, item := range items {
		at := 0
		if parts > 1 {
			at = PartOf(item) * size
		}
		part := bits[at : at+size]
		n, step := uint64(8*size), item>>32|1
		for range hashes {
			place := uint64(uint32(item)) * n >> 32
			part[place/8] |= 1 << (place % 8)
			item += step
		}
	}
}

// HasItem reports whether a part may have an item.
func HasItem(part []byte, item uint64, hashes byte) bool {
	if len(part) == 0 {
		return false
	}
	n, step := uint64(8*len(part)), item>>32|1
	for range hashes {
		place := uint64(uint32(item)) * n >> 32
		if part[place/8]>>(place%8)&1 == 0 {
			return false
		}
		item += step
	}
	return true
}

// FilterHead is the description before the bits of a filter.
type FilterHead struct {
	Classes byte
	Hashes  [ItemClasses]byte
	Lens    [ItemClasses]uint32 // bytes
}

// Read reads a head. Errors are left in s.
func (h *FilterHead) Read(s *column.Scan) {
	if h.Classes = s.Byte(); h.Classes>>ItemClasses != 0 {
		s.Fail()
	}
	for class := range ItemClasses {
		h.Hashes[class], h.Lens[class] = 0, 0
		if h.Classes>>class&1 == 0 {
			continue
		}
		h.Hashes[class], h.Lens[class] = s.Byte(), uint32(s.Below(file.MaxPageBytes))
		if n := int(h.Lens[class]); n%PartsOf(n) != 0 || h.Hashes[class] == 0 || h.Hashes[class] > maxFilterHashes {
			s.Fail()
		}
	}
}

// Append appends the stored form of the head.
func (h *FilterHead) Append(dst []byte) []byte {
	dst = append(dst, h.Classes)
	for class := range ItemClasses {
		if h.Classes>>class&1 != 0 {
			dst = binary.AppendUvarint(append(dst, h.Hashes[class]), uint64(h.Lens[class]))
		}
	}
	return dst
}

// Filter is a single filter: its head, and the bits of each of its classes.
type Filter struct {
	FilterHead
	Bits [ItemClasses][]byte
}

// Open reads a single filter.
func (f *Filter) Open(b []byte) error {
	s := column.Scan{Rest: b}
	f.Read(&s)
	for class := range ItemClasses {
		f.Bits[class] = s.Next(uint64(f.Lens[class]))
	}
	return s.End("filter of lines")
}

// Has reports whether the filter may have an item of a class.
func (f *Filter) Has(class byte, item uint64) bool {
	if f.Classes>>class&1 == 0 {
		return true
	}
	bits, size := f.Bits[class], len(f.Bits[class])/PartsOf(len(f.Bits[class]))
	if size < len(bits) {
		bits = bits[PartOf(item)*size:][:size]
	}
	return HasItem(bits, item, f.Hashes[class])
}

// CheckIn returns an error unless the filter has all items.
func (s *Items) CheckIn(filter []byte) error {
	var f Filter
	if err := f.Open(filter); err != nil {
		return err
	}
	for class := range ItemClasses {
		for _, item := range s.Lists[class] {
			if !f.Has(class, item) {
				return column.Corrupt("the filter lacks an item of class %d that the lines have", class)
			}
		}
	}
	return nil
}
