// Package promql gives the series and exemplars of package read to the upstream PromQL engine and API, as a
// storage.Queryable and a storage.ExemplarQueryable. It computes the commonest nodes of an expression
// itself ([Engine]).
//
// It owns the translation between the two: matchers, labels, milliseconds and nanoseconds, rows and sample
// iterators, histograms and their reset hints. Every result equals upstream's bit for bit, with the same
// warnings; an expression that this package cannot compute that way goes to upstream. It never changes a
// value, gives reset hints of histograms only if they are certain, and never turns an error into an empty
// result. docs/adr/0004-upstream-promql-engine.md has the decision.
package promql
