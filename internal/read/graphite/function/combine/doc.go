// Package combine holds the functions that make one series of several: sums, groups, percentages, reductions.
//
// It owns the group Combine of the table and the aggregation of lists, which other families use.
package combine
