package lines

import (
	"encoding/binary"
	"math"

	"github.com/zeebo/xxh3"

	"github.com/shaledb/shale/internal/model"
)

// A filter rules out substrings that the lines of a unit do not have. LogQL searches for substrings, not
// for words: the edge of a needle may be part of something longer. So a few bytes of content alone decide
// what goes into the filter, wherever a needle begins. The items are:
//
//   - every four consecutive letters of each word, without case. Words are few, and mostly the same from line
//     to line;
//   - minimizers of each long run of letters and digits, such as a trace id: the stretch of six bytes with
//     the least hash among each eleven consecutive ones. Any sixteen bytes of the run contain a minimizer,
//     and the filter holds a sixth of the stretches;
//   - each shorter run of hexadecimal digits as a whole, which helps needles that include both of its edges;
//   - the two middle numbers of dotted numbers, such as addresses;
//   - each name and value of structured metadata.
//
// They are stored in one Bloom filter for each class, of at most filterShare of the lines. Classes that do
// not fit are left out. docs/adr/0006-filter-of-lines.md has the decision.
const (
	wordGram    = 4
	longRun     = 16
	longGram    = 6
	longWindow  = longRun - longGram + 1
	minDigitRun = 5
)

// Classes of items, stored as bits: the classes that a filter has.
const (
	ItemWords byte = iota
	itemLong
	itemRuns
	itemPairs
	itemMetadata
	ItemClasses
)

// wordByte folds the case of the bytes of words, and is 0 for others.
var wordByte = func() (fold [256]byte) {
	for c := 'a'; c <= 'z'; c++ {
		fold[c], fold[c-'a'+'A'] = byte(c), byte(c)
	}
	for c := 0x80; c <= 0xff; c++ {
		fold[c] = byte(c)
	}
	return fold
}()

// Spread mixes the bits of x.
func Spread(x uint64) uint64 {
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	return x ^ x>>32
}

// gramItem is the item of four letters, the first one lowest. It is 0 for letters that hexadecimal numbers
// have.
func gramItem(gram uint32) uint64 {
	// A letter up to f is below 0x67.
	if hex := gram + 0x19191919; hex&0x80808080 == 0 && gram&0x80808080 == 0 {
		return 0
	}
	return Spread(uint64(gram) + 1<<32)
}

// eachGram calls fn with the item of every four consecutive letters.
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

// gramOrder is the multiplier that orders the six bytes of a stretch. The order is as good as random and
// cheap for each byte of a run. Only the upper bits are well mixed.
const gramOrder = 0xd6e8feb86659fd93

// minimizerStep is the number of stretches that are compared together: several windows.
const minimizerStep = 8 * longWindow

// appendMinimizers appends the items of the minimizers of a run of at least longRun bytes.
func appendMinimizers(dst []uint64, run []byte) []uint64 {
	var order [minimizerStep]uint64
	last := uint64(0)
	for {
		n := min(len(run)-(longGram-1), minimizerStep)
		orderGrams(order[:n], run)
		// The least of a window is the least of the end of one block and the beginning of the next.
		for at := 0; at+longWindow <= n; at += longWindow {
			ends, begins := order[at:at+longWindow], order[at+longWindow:n]
			for k := longWindow - 2; k >= 0; k-- {
				ends[k] = min(ends[k], ends[k+1])
			}
			least := uint64(math.MaxUint64)
			for k, end := range ends {
				if m := min(end, least); m != last {
					dst = append(dst, Spread(m))
					last = m
				}
				if k == len(begins) {
					break
				}
				least = min(least, begins[k])
			}
		}
		if n < minimizerStep {
			return dst
		}
		// All windows that begin in this step, except the last few, have been seen.
		run = run[n-longWindow+1:]
		if len(run) < longRun {
			return dst
		}
	}
}

// orderGrams fills order with the order of the stretches of a run of at least eight bytes.
func orderGrams(order []uint64, run []byte) {
	const small, low = 0x202020202020, 1<<(8*longGram) - 1 // digits are not changed by folding case
	n := min(len(order), len(run)-7)
	for i := range n {
		order[i] = (binary.LittleEndian.Uint64(run[i:])&low | small) * gramOrder
	}
	if n < len(order) {
		end := binary.LittleEndian.Uint64(run[len(run)-8:])
		for i := range order[n:] {
			end >>= 8
			order[n+i] = (end&low | small) * gramOrder
		}
	}
}

// runItem is the item of a whole run, or 0 if it is long, short, only letters, or has other bytes than
// hexadecimal digits.
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
	return Spread(Spread(lo+3<<56) + hi)
}

// pairAt reports whether the run of digits b[i:j] is the second of two dotted numbers, each of two or three
// digits, with a dot on both sides. It also returns where the first begins.
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
	return Spread(binary.LittleEndian.Uint64(buf[:]) + 4<<56)
}

// metadataItem is the item of a name and value of structured metadata.
func metadataItem[T ~[]byte | ~string](name, value T) uint64 {
	return Spread(xxh3.HashSeed([]byte(value), xxh3.Hash([]byte(name))))
}

// Items are the items of a unit, with few duplicates.
type Items struct {
	Lists [ItemClasses][]uint64
	// recent holds items by their lowest bits and leaves out most duplicates. Words have their own, since
	// nearly all of them repeat.
	recent, recentWords [recentItems]uint64
	count               int
	buf                 []uint64
}

const recentItems = 1 << 12

// Reset drops all items.
func (s *Items) Reset() {
	for i := range s.Lists {
		s.Lists[i] = s.Lists[i][:0]
	}
	s.count = 0
	clear(s.recent[:])
	clear(s.recentWords[:])
}

// Add adds an item of a class.
func (s *Items) Add(class byte, item uint64) {
	if r := &s.recent[item%recentItems]; *r != item {
		*r = item
		s.Lists[class] = append(s.Lists[class], item)
		s.count++
	}
}

func (s *Items) words(text []byte) {
	eachGram(text, func(item uint64) {
		if r := &s.recentWords[item%recentItems]; *r != item {
			*r = item
			s.Lists[ItemWords] = append(s.Lists[ItemWords], item)
			s.count++
		}
	})
}

func (s *Items) long(run []byte) {
	s.buf = appendMinimizers(s.buf[:0], run)
	for _, item := range s.buf {
		s.Add(itemLong, item)
	}
}

// anyRun adds a whole run.
func (s *Items) anyRun(run []byte) {
	if len(run) >= longRun {
		s.long(run)
	} else if item := runItem(run); item != 0 {
		s.Add(itemRuns, item)
	}
}

// fragment adds the words and runs of a text. A run at its end may be incomplete.
func (s *Items) fragment(text []byte) {
	s.words(text)
	for i := 0; i < len(text); i++ {
		j := i
		for j < len(text) && runClass[text[j]] != 0 {
			j++
		}
		s.anyRun(text[i:j])
		i = j
	}
}

func (s *Items) pair(b []byte) { s.Add(itemPairs, pairItem(b)) }

// Metadata adds the items of a set of structured metadata.
func (s *Items) Metadata(l model.Labels) {
	for name, value, rest, ok := l.Next(); ok; name, value, rest, ok = rest.Next() {
		s.Add(itemMetadata, metadataItem(name, value))
	}
}
