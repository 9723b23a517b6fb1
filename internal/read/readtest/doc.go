// Package readtest is an in-memory source of series, for tests of the packages above package read.
//
// It finds series by trying every one. It is never part of a running Shale.
package readtest
