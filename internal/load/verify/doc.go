// Package verify reads a load back over the APIs of Prometheus and Loki, and compares every sample bit for
// bit and every line byte for byte with what was sent. It sends nothing.
package verify
