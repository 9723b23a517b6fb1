// Package loki serves the HTTP API of Loki: queries for lines, labels and streams, and tailing by websocket,
// with Loki's parameters, JSON and error texts.
//
// It owns the parameters, the envelope, the statuses, the statistics of a response, and the tail connections.
// It never evaluates a query and never reads the store: it calls the engine of its options.
package loki
