// Package ports finds loopback addresses for servers that a test or a benchmark starts in other processes.
package ports
