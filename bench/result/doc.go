// Package result keeps what runs of the benchmark have measured: a record for each run of a load against a system, lines
// of JSON on disk; medians and ranges over them; tables for people, the format of Go benchmarks for benchstat, and the
// marked sections of a page that are made from them.
//
// It owns the names and units of the figures. It never measures, and never leaves out a run.
package result
