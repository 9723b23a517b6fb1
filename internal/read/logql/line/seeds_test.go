//go:build !torture

package line_test

// seeds are those of the random cases: the same at each run, so that a failure comes of what was changed.
// make torture tries others; one that fails there can stand here.
func seeds() []uint64 { return []uint64{1} }
