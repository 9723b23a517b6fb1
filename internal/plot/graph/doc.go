// Package graph draws series over time as a picture, in PNG or SVG: a title, two axes of values, an axis of
// time in a zone, a grid, lines, areas and a legend.
//
// It owns the layout, which does not depend on the format: both formats are painted through a canvas with
// lines, areas and text. It knows neither HTTP nor where series come from. Fonts are those of the Go
// project, which have Latin, Greek and Cyrillic letters; they measure text for SVG, too, whose readers have
// fonts of their own.
package graph
