// Package client talks to a server from outside, over the APIs of Prometheus and Loki. It does not know how a
// server works.
//
// A [Server] makes every request: it adds tenant and headers, bounds the time and the size of a response,
// and gives errors their class. With a [Retry] it waits for a server that is away. Its methods query samples,
// read series back, list label values and push lines. [Pages] splits a long range of lines into requests, and
// a [Tail] follows lines over several connections.
package client
