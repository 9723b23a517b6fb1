// Package client asks a server from outside, over the APIs of Prometheus and Loki: queries, remote read, and log lines.
// It knows nothing of how a server works.
package client
