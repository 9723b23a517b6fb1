// Package client talks to a server from outside, over the APIs of Prometheus and Loki: queries, remote read,
// and pages of log lines. It knows nothing of how a server works.
//
// A Server makes one request at a time for a user. A Reader retries, for verification. Pages splits a long
// range of log lines into requests. Shown remembers the lines that a tail has printed, so that a reconnect
// repeats none.
package client
