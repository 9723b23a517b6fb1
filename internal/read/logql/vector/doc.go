// Package vector computes with the numbers of a LogQL metric query once they have left the lines:
// aggregations over series, operations between two vectors, label_replace, and constants.
//
// Its operands and results are a [Matrix]: series of labels, each with the values of all evaluation steps. An
// instant query has one step. Operations are columnar: labels are grouped or matched once for a query, and
// values are then combined step by step, in the order of the series.
//
// The package knows syntax and labels. It never reads a store.
package vector
