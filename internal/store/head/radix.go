package head

import (
	"slices"

	"github.com/shaledb/shale/internal/model"
)

// sortEntry is a row on its way into order: the upper half of its key, and where the row is.
type sortEntry struct {
	hi   uint64
	span uint32
	row  uint32
}

// smallSort is the size below which comparing beats counting digits.
const smallSort = 1 << 10

// radixBits make a counting table of 16 KB, which stays in the first-level cache.
const radixBits = 11

// sortByHi orders entries by the upper half of their keys and keeps the order of equals. It uses tmp, of the same
// length, and returns whichever of the two holds the result.
func sortByHi(entries, tmp []sortEntry) []sortEntry {
	if len(entries) < smallSort {
		slices.SortStableFunc(entries, func(a, b sortEntry) int {
			switch {
			case a.hi < b.hi:
				return -1
			case a.hi > b.hi:
				return 1
			}
			return 0
		})
		return entries
	}
	// Digits in which all keys agree, such as the name when there is but one metric, need no pass.
	and, or := ^uint64(0), uint64(0)
	for i := range entries {
		and &= entries[i].hi
		or |= entries[i].hi
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
			counts[entries[i].hi>>shift&mask]++
		}
		sum := uint32(0)
		for d := range counts {
			counts[d], sum = sum, sum+counts[d]
		}
		for i := range entries {
			d := entries[i].hi >> shift & mask
			tmp[counts[d]] = entries[i]
			counts[d]++
		}
		entries, tmp = tmp, entries
	}
	return entries
}

// sortTies orders rows whose keys agree in the upper half by the lower half and then by time, and keeps the order of
// arrival. Nearly always they are rows of one series in order of time, and one pass does.
func sortTies(keys []model.Key, times []int64, values []uint64, starts []int64) {
	n := len(keys)
	ordered := true
	for i := 1; i < n && ordered; i++ {
		ordered = keys[i-1].Lo < keys[i].Lo || keys[i-1].Lo == keys[i].Lo && times[i-1] <= times[i]
	}
	if ordered {
		return
	}
	at := make([]int, n)
	for i := range at {
		at[i] = i
	}
	slices.SortStableFunc(at, func(a, b int) int {
		switch {
		case keys[a].Lo < keys[b].Lo || keys[a].Lo == keys[b].Lo && times[a] < times[b]:
			return -1
		case keys[a].Lo > keys[b].Lo || times[a] > times[b]:
			return 1
		}
		return 0
	})
	permute(keys, at)
	permute(times, at)
	permute(values, at)
	if len(starts) > 0 {
		permute(starts, at)
	}
}

func permute[T any](column []T, at []int) {
	moved := make([]T, len(at))
	for i, from := range at {
		moved[i] = column[from]
	}
	copy(column, moved)
}
