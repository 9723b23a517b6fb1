// Package plot writes line and bar charts as SVG: axes with round numbers and units, a legend, and nothing else.
//
// It owns the looks. The same data gives the same bytes, so that a chart in the repository changes only with its figures.
// Charts are legible on white and on dark pages, since they bring their own ground, and colours are told apart by most
// people who do not see all of them.
package plot
