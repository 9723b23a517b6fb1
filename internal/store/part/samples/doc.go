// Package samples holds the rows of series that are points: floats, histograms and exemplars.
//
// A page holds the rows of consecutive ranks, column by column. Series of a few rows share columns; times
// that series have in common are stored once.
package samples
