package slab

import (
	"math"
	"slices"
)

// doubt is the share of the bytes that BestSizes expects in items of sizes that are not in the demand, so
// that an item of a new size does not take many times its bytes.
const doubt = 0.01

// BestSizes returns the slab_sizes that take the fewest bytes of pages for a demand, and at most n of them.
// The last class, ChunkMax, is not listed.
//
// Sizes that put the same number of chunks on a page cost the same, so that only the largest of each is a
// candidate: about 700 in all. Over them a dynamic program is exact.
func (c Config) BestSizes(demand []Chunks, n int) []uint32 {

	bounds := candidates(c.ChunkMax)
	upTo := chunksUpTo(bounds, demand)
	m := len(bounds)
	// best[k][j] is the cost of all chunks up to bounds[j] with k classes, of which the largest is bounds[j].
	best, from := make([][]float64, n+2), make([][]int, n+2)
	for k := range best {
		best[k], from[k] = make([]float64, m), make([]int, m)
		for j := range best[k] {
			best[k][j] = math.Inf(1)
		}
	}
	for j, bound := range bounds {
		best[1][j], from[1][j] = upTo[j]*perChunk(bound)+Page/2, -1
	}
	for k := 2; k <= n+1; k++ {
		before := best[k-1]
		for j := k - 1; j < m; j++ {
			least, at, chunk := math.Inf(1), -1, perChunk(bounds[j])
			top := j // memcached refuses sizes that are too close
			for top > 0 && bounds[j] <= bounds[top-1]+align {
				top--
			}
			for i, count := range upTo[:top] {
				if total := before[i] + (upTo[j]-count)*chunk; total < least {
					least, at = total, i
				}
			}
			best[k][j], from[k][j] = least+Page/2, at
		}
	}
	least := 1
	for k := 2; k <= n+1; k++ {
		if best[k][m-1] < best[least][m-1] {
			least = k
		}
	}
	var sizes []uint32
	for k, j := least, m-1; j >= 0; k, j = k-1, from[k][j] {
		sizes = append(sizes, bounds[j])
	}
	slices.Reverse(sizes)
	return sizes[:len(sizes)-1] // without ChunkMax
}

// perChunk is what a chunk takes of a page, the end of the page included.
func perChunk(size uint32) float64 { return Page / float64(Page/size) }

// candidates returns the sizes of chunks that are worth having, of which the last is the largest chunk.
func candidates(largest uint32) (bounds []uint32) {
	for size := uint32(ItemHeader + 16); size < largest; {
		size = Page / (Page / size) / align * align
		if size >= largest {
			break
		}
		bounds = append(bounds, size)
		size += align
	}
	return append(bounds, largest)
}

// chunksUpTo returns how many chunks have at most the bytes of each bound.
func chunksUpTo(bounds []uint32, demand []Chunks) []float64 {
	upTo := make([]float64, len(bounds))
	at, bytes := 0, 0.0
	for _, d := range demand {
		for at < len(bounds)-1 && d.Size > bounds[at] {
			at++
		}
		upTo[at] += d.Count
		bytes += d.Count * float64(d.Size)
	}
	// What may come is spread evenly over the logarithm of the size.
	span := ln(float64(bounds[len(bounds)-1]) / float64(bounds[0]-align))
	before := bounds[0] - align
	for i, b := range bounds {
		upTo[i] += doubt * bytes * ln(float64(b)/float64(before)) / span / float64(b)
		before = b
	}
	for i := 1; i < len(upTo); i++ {
		upTo[i] += upTo[i-1]
	}
	return upTo
}
