// Package heap holds a binary heap of indexes, ordered by two keys that are stored next to each index.
//
// The keys are plain ordered values, so that the compiler inlines their comparison. Two shapes were tried
// before. container/heap calls an interface for each comparison and swap, and allocates to push a value. A
// heap of any type with a method Less calls that method through the dictionary of the generic instance, which
// made a step of a merge of four sources twice as slow. BenchmarkMerge has both next to this heap.
package heap
