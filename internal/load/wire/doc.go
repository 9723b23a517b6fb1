// Package wire encodes samples and lines: remote write 1.0 and 2.0, Graphite lines and pickles, and Loki
// pushes. It sends nothing.
package wire
