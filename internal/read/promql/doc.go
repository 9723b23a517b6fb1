// Package promql gives the series and exemplars of package read to the upstream PromQL engine and API, as a
// storage.Queryable and a storage.ExemplarQueryable, and computes the commonest nodes of an expression itself
// ([Engine]).
//
// It owns the translation between the two worlds: matchers, labels, milliseconds and nanoseconds, rows and
// sample iterators, histograms and their reset hints. It never evaluates what it could not evaluate as
// upstream does, bit for bit and warnings included; it never changes a value, never says of a histogram what
// is not certain, and never turns an error into an empty answer.
package promql
