// Package graphitetest has what tests of Graphite's renders share: engines over series in memory, the same
// random series for every test, and the comparison of two responses in JSON.
package graphitetest
