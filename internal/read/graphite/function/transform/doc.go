// Package transform holds the functions that change the values or the times of each series by itself: the
// group Transform of the table.
//
// It owns arithmetic, derivatives, sums over time, the filling of gaps, and shifts of the window.
package transform
