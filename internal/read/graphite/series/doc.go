// Package series holds the series that Graphite's functions compute with: values on a grid, tags, and the
// rules that give a series its name and its consolidation.
//
// It owns the representation of a missing value, the aggregations, the alignment of grids and the texts of
// numbers, which are those of Python, since they become parts of names. It knows neither functions nor the
// store.
package series
