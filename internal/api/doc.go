// Package api is the one HTTP pipeline that all dialects share.
//
// A dialect (Prometheus, Loki, the operator's pages) is a table of endpoints, a way to classify errors, and a
// way to write them. The pipeline does the rest for each request: form or body within their bounds, tenants,
// a turn among the running queries, quota, deadline, CORS, compression, the statement of cost, panics,
// metrics and the log.
//
// A query that finds the memory of all queries in use gives back its turn, waits for memory and runs from its
// beginning (see [model.QueryPool]). So an endpoint may be asked several times for one request, until the
// first byte of the response has been sent.
//
// A new endpoint is one line in the table of its dialect and one function. A new dialect is a package with a
// [Dialect], a table of [Endpoint] and a call of [Pipeline.Mount].
//
// This package knows no dialect: parameters, envelopes and the texts of errors belong to the packages below
// it.
package api
