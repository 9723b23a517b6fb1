// Package result keeps the figures of benchmark runs: a record for each run of a load against a system, as
// lines of JSON on disk. It computes medians and ranges, and writes tables, the format of Go benchmarks for
// benchstat, and the marked sections of a page.
//
// It owns the names and units of the figures. It never measures, and never leaves out a run.
package result
