// Package heap holds a binary heap of one item type.
//
// container/heap calls an interface for each comparison and swap, and allocates to push a value. This heap
// keeps its items in one slice, moves each once per level, and allocates only when that slice grows.
// BenchmarkMerge compares the two.
package heap
