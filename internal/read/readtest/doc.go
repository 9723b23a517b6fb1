// Package readtest is a source of series in memory, for tests of whatever stands above package read.
//
// It owns nothing but its maps, answers by trying every series, and is never part of a running Shale.
package readtest
