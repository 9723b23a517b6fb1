// Package loki answers the HTTP API of Loki: queries of lines, their labels and streams, and the following of new lines by
// websocket, with Loki's parameters, JSON and texts of errors.
//
// It owns the parameters, the envelope, the statuses, the tenants of a request, the statistics of an answer, and the
// connections that follow new lines. It never evaluates a query and never reads the store; the engine that it is given
// does.
package loki
