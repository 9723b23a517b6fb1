// Package faultproxy is an HTTP proxy that injects faults into the requests to an object store.
//
// It owns the rules of what fails and the counts of what was sent. It passes requests on as they are, so that
// their signatures stay valid. Tests and benchmarks put it in front of a real server.
package faultproxy
