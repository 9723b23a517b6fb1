// Package retention says how long the rows of each series are kept.
//
// It owns the rules: their text, which rule counts for a series, and the groups of series that are kept for
// the same time. It never does I/O. The read path asks it for the time before which rows are hidden, and
// compaction for the group that a series is stored in.
package retention
