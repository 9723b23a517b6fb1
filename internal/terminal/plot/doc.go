// Package plot draws series of samples in a terminal: lines of braille dots, axes with round ticks, a colour
// for each series and a legend.
//
// A [Chart] needs nothing from the terminal but its size. A cell of braille has two by four dots, so that a
// line is smooth. Without colours braille lines cannot be told apart, so several series are drawn with
// letters then, and without UTF-8 everything is ASCII.
//
// No library does this for times. The package asciigraph spaces points by their index, without times and
// without braille. The package ntcharts draws braille, but it connects points across gaps, does not know
// NaN, and brings a framework for interactive programs.
package plot
