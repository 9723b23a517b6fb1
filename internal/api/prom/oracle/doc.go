// Package oracle compares package prom with the server of Prometheus: both serve one store and one engine,
// and get the same requests.
//
// It is a module of its own, because the server of Prometheus has dependencies that Shale does not need
// otherwise. It holds only tests: go test ./... in this folder runs them.
package oracle
