// Package window aggregates the samples of one series over sliding windows of time.
//
// The windows of a query are (t-range, t], for the time t of each step. Their ends cut time into cells, at
// most two for each step, so that a window is a sequence of whole cells. A [Track] keeps one partial
// aggregate for each cell that has samples. Its values at all steps follow from the partial aggregates alone:
// a queue slides over the cells and merges each a constant number of times, whatever the ratio of range to
// step. Quantiles and rates of counters keep their samples.
//
// Results do not depend on the order in which samples arrive, since sums are exact until they are rounded at
// the end. Only the last bits of variances depend on it.
//
// It reads no lines and knows no labels.
package window
