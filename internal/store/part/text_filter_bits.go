package part

import (
	"encoding/binary"
	"math"
)

const (
	// filterShare is the greatest part of a unit's lines and metadata that its filter takes, in thousandths.
	filterShare     = 19
	maxFilterHashes = 16

	// filterParts is into how many parts the bits of a class are divided, each item being in one of them, so that whoever looks
	// for one item needs a part of each of many filters (see filterPage). A class of less than minPart bytes a part is one part:
	// items fall into parts by chance, and some of small ones would be full.
	filterParts = 64
	minPart     = 8
)

// partsOf returns into how many parts a class of so many bytes is divided.
func partsOf(bytes int) int {
	if bytes < filterParts*minPart {
		return 1
	}
	return filterParts
}

// partOf returns the part of an item among filterParts. It takes none of the bits that decide the first place there.
func partOf(item uint64) int { return int(item >> 33 % filterParts) }

// itemBits is how many bits an item of each class has at most. Words are few and say much; runs are many and help seldom.
var itemBits = [itemClasses]int{itemWords: 16, itemLong: 8, itemRuns: 4, itemPairs: 8, itemMetadata: 10}

// append appends the filter of lines that take so many bytes with their metadata: the classes that it has, of each the number of
// hashes and its length, and the bits of each. Nothing is appended if nothing fits.
func (s *filterItems) append(dst []byte, bytes int) []byte {
	const headBytes = 1 + 4*int(itemClasses)
	most := 8 * (bytes*filterShare/1000 - headBytes)
	var want [itemClasses]int // bits
	total := 0
	for class := range itemClasses {
		want[class] = len(s.lists[class]) * itemBits[class]
		total += want[class]
	}
	classes := byte(1<<itemClasses - 1)
	for total > 0 && total > 2*most {
		// With less than half of their bits, items are not worth having: runs go, then the largest class.
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
	var hashes [itemClasses]int
	for class := range itemClasses {
		if classes>>class&1 == 0 {
			continue
		}
		if total > most {
			want[class] = int(int64(want[class]) * int64(most) / int64(total))
		}
		if want[class] = (want[class] + 7) / 8; partsOf(want[class]) > 1 {
			want[class] -= want[class] % filterParts
		}
		hashes[class] = 1
		if n := len(s.lists[class]); n > 0 {
			// The fewest false positives come with ln 2 hashes a bit.
			hashes[class] = min(max(int(math.Round(float64(8*want[class])/float64(n)*math.Ln2)), 1), maxFilterHashes)
		}
		dst = binary.AppendUvarint(append(dst, byte(hashes[class])), uint64(want[class]))
	}
	for class := range itemClasses {
		at := len(dst)
		dst = append(dst, make([]byte, want[class])...)
		if want[class] > 0 {
			setItems(dst[at:], s.lists[class], hashes[class])
		}
	}
	return dst
}

// setItems sets the bits of items of a class.
func setItems(bits []byte, items []uint64, hashes int) {
	parts := partsOf(len(bits))
	size := len(bits) / parts
	for _, item := range items {
		at := 0
		if parts > 1 {
			at = partOf(item) * size
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

// hasItem reports whether a part may have an item.
func hasItem(part []byte, item uint64, hashes byte) bool {
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

// filterHead is what stands before the bits of a filter.
type filterHead struct {
	classes byte
	hashes  [itemClasses]byte
	lens    [itemClasses]uint32 // bytes
}

// scan reads a head. What is wrong shows in s.
func (h *filterHead) scan(s *scan) {
	if h.classes = s.byte(); h.classes>>itemClasses != 0 {
		s.fail()
	}
	for class := range itemClasses {
		h.hashes[class], h.lens[class] = 0, 0
		if h.classes>>class&1 == 0 {
			continue
		}
		h.hashes[class], h.lens[class] = s.byte(), uint32(s.below(maxPageBytes))
		if n := int(h.lens[class]); n%partsOf(n) != 0 || h.hashes[class] == 0 || h.hashes[class] > maxFilterHashes {
			s.fail()
		}
	}
}

func (h *filterHead) append(dst []byte) []byte {
	dst = append(dst, h.classes)
	for class := range itemClasses {
		if h.classes>>class&1 != 0 {
			dst = binary.AppendUvarint(append(dst, h.hashes[class]), uint64(h.lens[class]))
		}
	}
	return dst
}

// itemFilter is a filter by itself: its head, and the bits of each of its classes.
type itemFilter struct {
	filterHead
	bits [itemClasses][]byte
}

func (f *itemFilter) open(b []byte) error {
	s := scan{b: b}
	f.scan(&s)
	for class := range itemClasses {
		f.bits[class] = s.take(uint64(f.lens[class]))
	}
	return s.end("filter of lines")
}

// has reports whether the filter may have an item of a class.
func (f *itemFilter) has(class byte, item uint64) bool {
	if f.classes>>class&1 == 0 {
		return true
	}
	bits, size := f.bits[class], len(f.bits[class])/partsOf(len(f.bits[class]))
	if size < len(bits) {
		bits = bits[partOf(item)*size:][:size]
	}
	return hasItem(bits, item, f.hashes[class])
}

// in returns an error unless a filter has all items.
func (s *filterItems) in(filter []byte) error {
	var f itemFilter
	if err := f.open(filter); err != nil {
		return err
	}
	for class := range itemClasses {
		for _, item := range s.lists[class] {
			if !f.has(class, item) {
				return corrupt("the filter lacks an item of class %d that the lines have", class)
			}
		}
	}
	return nil
}
