// Package values computes the values of a series: floats by several models, and native histograms. A value is
// a pure function of the series and of its age.
package values
