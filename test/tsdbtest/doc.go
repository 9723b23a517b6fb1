// Package tsdbtest compares Shale with the storage of Prometheus: both take the same random samples, in random order, and
// must give the same series, samples and answers.
//
// It owns the generator of samples and the list of differences that are meant. It tests the whole engine from the write
// path to the read path, with rows that move, and restarts, in between; it knows nothing of how either storage works.
package tsdbtest
