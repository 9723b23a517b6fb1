// Package promqltest runs the test files of upstream PromQL, as they come with the module, against a Shale engine:
// samples go in through the write path, queries are answered by the read path, and the rows lie in buffers, in local
// parts or in the bucket.
//
// It owns the adapter to upstream's storage interface and the cutting of test files into sections. It never changes a
// test: a section that needs native histograms is left out whole and listed in SKIPPED.md.
package promqltest
