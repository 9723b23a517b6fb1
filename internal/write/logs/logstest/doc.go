// Package logstest compares receivers of log lines with Loki's recorded responses to the same requests,
// and has a store for them to push to.
//
// It owns neither the requests nor the responses: each receiver has its own in its folder testdata.
// Only tests import it.
package logstest
