// Package plot writes line and bar charts as SVG: axes with round numbers and units, a legend, and nothing
// else.
//
// It owns the looks. The same data gives the same bytes, so that a chart in the repository changes only with
// its figures. Charts have their own background, so they are legible on light and dark pages. The colours
// suit most colour-blind readers.
package plot
