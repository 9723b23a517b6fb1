//go:build !torture

package line_test

// seeds are those of the random cases: the same at each run, so that a failure is due to a change. make
// torture tries others; a seed that fails there can be added here.
func seeds() []uint64 { return []uint64{1} }
