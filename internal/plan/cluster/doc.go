// Package cluster turns the needs of a cache into nodes and dollars.
//
// It owns the price table, the limits of a node, and the cost of losing one. It never simulates a cache.
package cluster
