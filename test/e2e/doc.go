// Package e2e runs the built program with real clients, such as Debian's prometheus, collectd and nc, and
// compares Shale's results with the clients' own data.
//
// It owns the processes that it starts, each in a temporary folder and on free ports of the loopback
// interface. It never imports a room of the engine: it knows Shale as its users do. Its tests carry the build
// tag e2e:
//
//	go test -tags e2e -count=1 -v ./test/e2e -duration 10m
package e2e
