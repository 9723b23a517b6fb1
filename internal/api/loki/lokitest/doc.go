// Package lokitest compares responses with those that a real Loki gave to requests over the same lines.
//
// It owns the recordings of Loki, the lines that Loki had, and the list of intended differences. Tests of the
// API run it over a store in memory, and those of test/stagetest over the real store. It is never part of a
// running Shale.
package lokitest
