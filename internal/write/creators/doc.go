// Package creators counts which metrics and which streams create series: in the last minutes, and on each
// day.
//
// It sees label sets of new series alone, so known series cost nothing. Its memory is bounded by sketches, a
// few for each of a bounded number of tenants. Days go to files, one a day.
package creators
