// Package oracle compares package prom with Prometheus: one store and one engine, two servers before them, the same
// requests to both.
//
// It is a module of its own, because the server of Prometheus brings dependencies that Shale has no other need of. It
// holds nothing but tests: go test ./... in this folder runs them.
package oracle
