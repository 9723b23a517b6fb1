// Package tsdbtest compares Shale with the storage of Prometheus: both receive the same random samples, in
// random order, and must return the same series, samples and results.
//
// It owns the generator of samples and the list of intended differences. It tests the whole engine from the
// write path to the read path, with moves of rows and restarts in between. It knows nothing about the inside
// of either storage.
package tsdbtest
