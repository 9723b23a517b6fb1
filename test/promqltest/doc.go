// Package promqltest runs the test files of upstream PromQL, as they come with the module, against a Shale engine:
// samples go in through the write path, queries are answered by the read path, and the rows lie in buffers, in local
// parts or in the bucket, shipped or merged.
//
// It owns the adapter to upstream's storage interface, which other tests use too. It never changes a test or leaves one
// out: SKIPPED.md says so, and what there is.
package promqltest
