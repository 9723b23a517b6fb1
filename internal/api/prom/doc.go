// Package prom serves the Prometheus HTTP API: queries, series, labels, remote read, federation and status,
// in upstream's JSON.
//
// It owns the parameters, the envelope, and the error types with their status codes. It never evaluates a
// query and never reads the store: it calls the engine and the queryable of its options.
package prom
