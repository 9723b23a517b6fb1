package keysort

import "slices"

// Entry is a reference to a row: the upper half of its key, and the span and index of the row.
type Entry struct {
	Hi   uint64
	Span uint32
	Row  uint32
}

// smallSort is the number of entries below which comparing is faster than counting digits.
const smallSort = 1 << 10

// radixBits make a counting table of 16 KB, which stays in the first-level cache.
const radixBits = 11

// ByHi orders entries by the upper half of their keys and keeps the order of equals. It uses tmp, of the same
// length, and returns the one of the two that holds the result.
func ByHi(entries, tmp []Entry) []Entry {
	if len(entries) < smallSort {
		slices.SortStableFunc(entries, func(a, b Entry) int {
			switch {
			case a.Hi < b.Hi:
				return -1
			case a.Hi > b.Hi:
				return 1
			}
			return 0
		})
		return entries
	}
	// Digits in which all keys agree need no pass: with a single metric, those of its name.
	and, or := ^uint64(0), uint64(0)
	for i := range entries {
		and &= entries[i].Hi
		or |= entries[i].Hi
	}
	differ := and ^ or
	var counts [1 << radixBits]uint32
	for shift := 0; shift < 64; shift += radixBits {
		const mask = 1<<radixBits - 1
		if differ>>shift&mask == 0 {
			continue
		}
		clear(counts[:])
		for i := range entries {
			counts[entries[i].Hi>>shift&mask]++
		}
		sum := uint32(0)
		for d := range counts {
			counts[d], sum = sum, sum+counts[d]
		}
		for i := range entries {
			d := entries[i].Hi >> shift & mask
			tmp[counts[d]] = entries[i]
			counts[d]++
		}
		entries, tmp = tmp, entries
	}
	return entries
}
