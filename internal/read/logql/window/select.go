package window

import (
	"math/bits"
	"slices"
)

// selection gives values of a list by their index in the order of values.
type selection struct {
	keys  []uint64 // in any order
	known int      // index of a key that is where it belongs, with no lesser key after it; -1: none
}

// value returns the value at index i. It is cheap for the index after the last one that was asked for.
func (s *selection) value(i int) float64 {
	switch {
	case s.known < 0 || i < s.known || i > s.known+1:
		selectKey(s.keys, i)
		s.known = i
	case i == s.known+1:
		return valueOf(slices.Min(s.keys[i:]))
	}
	return valueOf(s.keys[i])
}

// fewKeys are sorted rather than parted further.
const fewKeys = 12

// selectKey moves keys such that the one at index i is where it would be if they were sorted, with no greater
// one before it and no lesser one after it.
func selectKey(keys []uint64, i int) {
	// A pivot that halves what is left takes as many rounds as the length has bits. Three times as many are a
	// sign of keys that defeat the choice of pivots.
	for rounds := 3 * bits.Len(uint(len(keys))); rounds > 0 && len(keys) > fewKeys; rounds-- {
		p := pivot(keys)
		less := part(keys, p)
		if i < less {
			keys = keys[:less]
			continue
		}
		keys, i = keys[less:], i-less
		if p == 1<<64-1 {
			return // nothing is greater
		}
		equal := part(keys, p+1)
		if i < equal {
			return
		}
		keys, i = keys[equal:], i-equal
	}
	slices.Sort(keys)
}

// pivot returns a median of medians of nine keys. There must be nine of them.
func pivot(keys []uint64) uint64 {
	step := (len(keys) - 1) / 8
	var medians [3]uint64
	for i := range medians {
		medians[i] = median(keys[3*i*step], keys[(3*i+1)*step], keys[(3*i+2)*step])
	}
	return median(medians[0], medians[1], medians[2])
}

func median(a, b, c uint64) uint64 { return max(min(a, b), min(max(a, b), c)) }

// part moves keys below p to the front and returns how many there are. Each key is swapped whether or not it
// is below p, so that no branch depends on it.
func part(keys []uint64, p uint64) (less int) {
	for i, key := range keys {
		keys[i] = keys[less]
		keys[less] = key
		if key < p {
			less++
		}
	}
	return less
}
