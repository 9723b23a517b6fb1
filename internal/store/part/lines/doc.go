// Package lines is the codec of pages of log lines, and of the filters over them.
//
// The codec takes lines apart into fixed text and columns of values (the files fields*.go). A filter is a
// Bloom filter for each class of [Items], and says which substrings the lines do not have; a [Literal] is
// what a query looks for in it.
package lines
