// Package sample evaluates range aggregations, such as rate({app="web"}[5m]): it makes numbers of the lines
// that a selection finds.
package sample
