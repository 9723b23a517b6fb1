// Package system starts and stops the servers that the benchmark compares: Shale, VictoriaMetrics,
// Prometheus, Loki and VictoriaLogs. Each runs from the path of a binary, on free loopback ports, over a
// folder that is removed.
//
// It owns the differences between them: flags, addresses, names of counters. It never ends a process that it
// has not started.
package system
