// Package graphitetest compares responses of api/graphite with those of graphite-web: it serves series from
// memory, and says how two responses differ.
package graphitetest
