// Package promql gives the series of package read to the upstream PromQL engine, as a storage.Queryable.
//
// It owns the translation between the two worlds: matchers, labels, milliseconds and nanoseconds, rows and sample
// iterators. It never evaluates anything, never changes a value, and never turns an error into an empty answer.
package promql
