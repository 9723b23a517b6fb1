package part

import (
	"encoding/binary"
	"math"

	"github.com/zeebo/xxh3"

	"github.com/shaledb/shale/internal/model"
)

// A filter says which substrings the lines of a unit do not have. LogQL looks for substrings, not for words: what stands at the
// edge of a needle may be part of something longer. So what goes into the filter is decided by a few bytes of content alone,
// wherever a needle begins. Its items are
//
//   - of each word, a stretch of letters without case: all stretches of four letters. Words are few, and mostly the same from
//     line to line;
//   - of each long run of letters and digits, such as a trace id: minimizers, the least by their hash of each eleven
//     stretches of six bytes that follow each other. So any sixteen bytes of the run have one that is in the filter, while of
//     the run a sixth is;
//   - each shorter run of hexadecimal digits: the run as a whole, which helps needles that have what stands on both sides;
//   - of dotted numbers such as addresses: the two in the middle;
//   - of structured metadata: name and value.
//
// They are in a Bloom filter of at most filterShare of what the lines take. What does not fit is left out, class by class.
const (
	wordGram    = 4
	longRun     = 16
	longGram    = 6
	longWindow  = longRun - longGram + 1
	minDigitRun = 5

	// filterShare is the greatest part of a unit's lines and metadata that its filter takes, in thousandths.
	filterShare = 19
	// leastItemBits is below how many bits an item is not worth having, mostItemBits how many it has at most.
	leastItemBits, mostItemBits = 5, 12

	maxFilterHashes = 16
)

// Classes of items, as they are stored: as bits, of those that the filter has.
const (
	itemWords byte = iota
	itemLong
	itemRuns
	itemPairs
	itemMetadata
	itemClasses
)

// wordByte folds the bytes of which words are made, and is 0 for others.
var wordByte = func() (fold [256]byte) {
	for c := 'a'; c <= 'z'; c++ {
		fold[c], fold[c-'a'+'A'] = byte(c), byte(c)
	}
	for c := 0x80; c <= 0xff; c++ {
		fold[c] = byte(c)
	}
	return fold
}()

// spread mixes the bits of x.
func spread(x uint64) uint64 {
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	return x ^ x>>32
}

// gramItem is the item of four letters, the first lowest. It is 0 of those that hexadecimal numbers have.
func gramItem(gram uint32) uint64 {
	// A letter up to f is below 0x67.
	if hex := gram + 0x19191919; hex&0x80808080 == 0 && gram&0x80808080 == 0 {
		return 0
	}
	return spread(uint64(gram) + 1<<32)
}

// eachGram calls fn with the item of each four letters that follow each other.
func eachGram(text []byte, fn func(item uint64)) {
	n, gram := 0, uint32(0)
	for _, c := range text {
		w := wordByte[c]
		if w == 0 {
			n = 0
			continue
		}
		gram = gram>>8 | uint32(w)<<24
		if n++; n >= wordGram {
			if item := gramItem(gram); item != 0 {
				fn(item)
			}
		}
	}
}

// appendMinimizers appends the items of the minimizers of a run of at least longRun bytes.
func appendMinimizers(dst []uint64, run []byte) []uint64 {
	var hashes [longWindow]uint64
	gram := uint64(0)
	least, at, next := uint64(math.MaxUint64), -1, 0 // next is the place of the next stretch in hashes
	for i, c := range run {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		gram = gram>>8 | uint64(c)<<40
		k := i - (longGram - 1) // the place of the stretch
		if k < 0 {
			continue
		}
		h := spread(gram + 2<<56)
		hashes[next] = h
		if next++; next == longWindow {
			next = 0
		}
		switch {
		case h <= least:
			least, at = h, k
		case at <= k-longWindow:
			// The least has left the window.
			least = h
			for j, x := range hashes {
				if x <= least {
					// hashes[next] is the oldest.
					if age := (next + longWindow - 1 - j) % longWindow; x < least || k-age > at {
						least, at = x, k-age
					}
				}
			}
		default:
			if k != longWindow-1 {
				continue
			}
		}
		if k >= longWindow-1 {
			dst = append(dst, least)
		}
	}
	return dst
}

// runItem is the item of a whole run, or 0 if it is long, or short, or has anything but hexadecimal digits, or letters alone.
func runItem(run []byte) uint64 {
	if len(run) >= longRun || len(run) < minFieldHex {
		return 0
	}
	var buf [longRun]byte
	digits := 0
	for i, c := range run {
		switch {
		case c >= '0' && c <= '9':
			digits++
		case c >= 'a' && c <= 'f':
		case c >= 'A' && c <= 'F':
			c += 'a' - 'A'
		default:
			return 0
		}
		buf[i] = c
	}
	if digits == 0 || digits == len(run) && digits < minDigitRun {
		return 0
	}
	lo, hi := binary.LittleEndian.Uint64(buf[:8]), binary.LittleEndian.Uint64(buf[8:])
	return spread(spread(lo+3<<56) + hi)
}

// pairAt reports whether the run b[i:j] of digits is the second of two dotted numbers, each of two or three digits, with a dot on
// both sides, and where the first begins.
func pairAt(b []byte, i, j int) (first int, ok bool) {
	if n := j - i; n < 2 || n > 3 || i < 4 || b[i-1] != '.' || j == len(b) || b[j] != '.' {
		return 0, false
	}
	for _, c := range b[i:j] {
		if runClass[c] != isDigit {
			return 0, false
		}
	}
	k := i - 1
	for k > 0 && i-1-k < 4 && runClass[b[k-1]] == isDigit {
		k--
	}
	n := i - 1 - k
	return k, (n == 2 || n == 3) && k > 0 && b[k-1] == '.'
}

// pairItem is the item of two dotted numbers.
func pairItem(b []byte) uint64 {
	var buf [8]byte
	copy(buf[:], b)
	return spread(binary.LittleEndian.Uint64(buf[:]) + 4<<56)
}

// metadataItem is the item of a name and value of structured metadata.
func metadataItem[T ~[]byte | ~string](name, value T) uint64 {
	return spread(xxh3.HashSeed([]byte(value), xxh3.Hash([]byte(name))))
}

// filterItems are the items of a unit: most of them once.
type filterItems struct {
	lists [itemClasses][]uint64
	// recent are items that are there, by their lowest bits: it leaves out most of those that come again. Those of words are
	// apart, which all would come again.
	recent, recentWords [recentItems]uint64
	count               int
	buf                 []uint64
}

const recentItems = 1 << 12

func (s *filterItems) reset() {
	for i := range s.lists {
		s.lists[i] = s.lists[i][:0]
	}
	s.count = 0
	clear(s.recent[:])
	clear(s.recentWords[:])
}

func (s *filterItems) add(class byte, item uint64) {
	if r := &s.recent[item%recentItems]; *r != item {
		*r = item
		s.lists[class] = append(s.lists[class], item)
		s.count++
	}
}

func (s *filterItems) words(text []byte) {
	eachGram(text, func(item uint64) {
		if r := &s.recentWords[item%recentItems]; *r != item {
			*r = item
			s.lists[itemWords] = append(s.lists[itemWords], item)
			s.count++
		}
	})
}

func (s *filterItems) long(run []byte) {
	s.buf = appendMinimizers(s.buf[:0], run)
	for _, item := range s.buf {
		s.add(itemLong, item)
	}
}

func (s *filterItems) run(run []byte) {
	if item := runItem(run); item != 0 {
		s.add(itemRuns, item)
	}
}

func (s *filterItems) pair(b []byte) { s.add(itemPairs, pairItem(b)) }

// missing returns an item of a class that a filter has, but which it does not have.
func (s *filterItems) missing(filter []byte) (class byte, missing bool) {
	for class := range itemClasses {
		for _, item := range s.lists[class] {
			if has, ok := filterHas(filter, class, item); !has || !ok {
				return class, true
			}
		}
	}
	return 0, false
}

func (s *filterItems) metadata(l model.Labels) {
	for name, value, rest, ok := l.Next(); ok; name, value, rest, ok = rest.Next() {
		s.add(itemMetadata, metadataItem(name, value))
	}
}

// append appends the filter of lines that take so many bytes with their metadata: the classes that it has, the number of
// hashes, and the bits. Nothing is appended if nothing fits.
func (s *filterItems) append(dst []byte, bytes int) []byte {
	classes := byte(1<<itemClasses - 1)
	most := 8 * (bytes*filterShare/1000 - 2)
	n := s.count
	for n > 0 && n*leastItemBits > most {
		// The largest class goes.
		largest := byte(0)
		for class := range itemClasses {
			if classes>>class&1 != 0 && (classes>>largest&1 == 0 || len(s.lists[class]) > len(s.lists[largest])) {
				largest = class
			}
		}
		classes &^= 1 << largest
		n -= len(s.lists[largest])
	}
	if classes == 0 || most <= 0 {
		return dst
	}
	size := (min(n*mostItemBits, most) + 7) / 8
	hashes := byte(1)
	if n > 0 {
		// The fewest false positives come with ln 2 hashes a bit.
		hashes = byte(min(max(math.Round(float64(8*size)/float64(n)*math.Ln2), 1), maxFilterHashes))
	}
	dst = append(dst, classes, hashes)
	at := len(dst)
	dst = append(dst, make([]byte, size)...)
	bits := dst[at:]
	for class := range itemClasses {
		if classes>>class&1 == 0 {
			continue
		}
		for _, item := range s.lists[class] {
			step := item>>32 | 1
			for range hashes {
				place := uint64(uint32(item)) * uint64(8*size) >> 32
				bits[place/8] |= 1 << (place % 8)
				item += step
			}
		}
	}
	return dst
}

// filterHas reports whether a filter may have an item of a class. ok is false if it is no filter.
func filterHas(filter []byte, class byte, item uint64) (has, ok bool) {
	if len(filter) < 2 || filter[0]>>itemClasses != 0 || filter[1] == 0 || filter[1] > maxFilterHashes {
		return true, false
	}
	if filter[0]>>class&1 == 0 {
		return true, true
	}
	bits := filter[2:]
	step := item>>32 | 1
	for range filter[1] {
		place := uint64(uint32(item)) * uint64(8*len(bits)) >> 32
		if len(bits) == 0 || bits[place/8]>>(place%8)&1 == 0 {
			return false, true
		}
		item += step
	}
	return true, true
}
