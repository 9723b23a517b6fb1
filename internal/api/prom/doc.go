// Package prom answers the Prometheus HTTP API: queries, series, labels and build information, in upstream's JSON.
//
// It owns the parameters, the envelope, the error types and their status codes, the tenant of a request, and the gate
// that bounds how many queries run at one time. It never evaluates a query and never reads the store itself; the
// engine and the queryable that it is given do.
package prom
