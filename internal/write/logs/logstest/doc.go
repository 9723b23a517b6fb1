// Package logstest holds receivers of log lines to what Loki said of the same requests, and is a store that they push to.
//
// It owns neither the requests nor the answers: each receiver has its own, in its folder testdata. It is imported by tests
// only.
package logstest
