package patterns

import (
	"slices"
)

const (
	// fine and coarse are the widths of buckets in seconds. A coarse one is a whole number of fine ones.
	fine   = 10
	coarse = 600
	// bucketBytes is the size of a bucket.
	bucketBytes = 8
)

// bucket says how many lines there were in an interval that begins at a time, in Unix seconds.
type bucket struct {
	begin uint32
	lines float32
}

// bucketOf returns the number of the fine bucket of a time in Unix nanoseconds, or -1 if it has none.
func bucketOf(time int64) int64 {
	seconds := time / 1e9
	if seconds < 0 {
		return -1
	}
	return seconds / fine
}

// addTo adds lines to the bucket that begins at a time.
func addTo(counts []bucket, begin uint32, lines float32) []bucket {
	last := len(counts) - 1
	switch {
	case last < 0 || counts[last].begin < begin:
		return append(counts, bucket{begin, lines})
	case counts[last].begin == begin:
		counts[last].lines += lines
		return counts
	}
	i, found := slices.BinarySearchFunc(counts, begin, func(b bucket, begin uint32) int {
		switch {
		case b.begin < begin:
			return -1
		case b.begin > begin:
			return 1
		}
		return 0
	})
	if found {
		counts[i].lines += lines
		return counts
	}
	return slices.Insert(counts, i, bucket{begin, lines})
}

// coarsen makes coarse buckets of those that begin before a time, which is a multiple of coarse.
func coarsen(counts []bucket, before uint32) []bucket {
	out := counts[:0]
	for _, b := range counts {
		if b.begin < before {
			b.begin -= b.begin % coarse
		}
		if last := len(out) - 1; last >= 0 && out[last].begin == b.begin {
			out[last].lines += b.lines
			continue
		}
		out = append(out, b)
	}
	return slices.Clip(slices.Clone(out))
}

// forget drops the buckets that begin before a time.
func forget(counts []bucket, before uint32) []bucket {
	i := 0
	for i < len(counts) && counts[i].begin < before {
		i++
	}
	if i == 0 {
		return counts
	}
	return slices.Clone(counts[i:])
}
