// Package promql gives the series and exemplars of package read to the upstream PromQL engine and API, as a
// storage.Queryable and a storage.ExemplarQueryable.
//
// It owns the translation between the two worlds: matchers, labels, milliseconds and nanoseconds, rows and sample
// iterators, histograms and their reset hints. It never evaluates anything, never changes a value, never says of a
// histogram what is not certain, and never turns an error into an empty answer.
package promql
