// Package attime reads the times of Graphite requests: now, -1d, noon yesterday, 04:00_20110501, 20110501,
// monday.
//
// It owns the grammar of graphite-web 1.1.10, which descends from at(1), with its zones. It never asks the
// clock.
package attime
