// Package system starts and stops the servers that the benchmark compares: Shale itself, VictoriaMetrics and Prometheus,
// each from the path of a binary, on loopback ports that nobody uses, over a folder that is removed.
//
// It owns what differs between them: flags, addresses, names of counters. It never ends a process that it has not
// started.
package system
