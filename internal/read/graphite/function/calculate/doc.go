// Package calculate holds the functions that compute with a stretch of time: moving windows, forecasts,
// regressions and percentiles over a whole series. They are the group Calculate of the table.
//
// It owns the windows before the start of a graph, for which an argument is evaluated again.
package calculate
