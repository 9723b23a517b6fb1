// Package promqltest runs upstream's PromQL test files, as shipped with the module, against a Shale engine.
// Samples go through the write path and queries through the read path. The rows are in buffers, in local
// parts or in the bucket, shipped or merged.
//
// It owns the adapter to upstream's storage interface, which other tests use too. It never changes or skips a
// test; SKIPPED.md lists the files.
package promqltest
