// Package exporter serves what memcached servers say of themselves to Prometheus: under the names of
// memcached_exporter, and what that lacks.
//
// It owns the names. It asks servers when it is asked, and never changes one.
package exporter
