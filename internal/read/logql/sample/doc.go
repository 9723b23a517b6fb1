// Package sample evaluates range aggregations, such as rate({app="web"}[5m]): it makes numbers of the lines
// that a selection finds.
//
// A [Program] is compiled once. An evaluation is a sink of package selection whose workers share nothing.
// Each worker has series of its own, by the labels that Loki gives to a line's sample, and adds numbers to
// the cells of package window. At the end the workers' series are merged, and their windows become a matrix.
//
// What chunks know of their lines is not read. Without stages, a chunk that lies in one cell is counted by
// its number of lines or bytes. Another one is counted by its times and lengths, a cell at a time.
//
// It computes nothing with the values of several series.
package sample
