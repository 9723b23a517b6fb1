// Package advise says where the memory of memcached servers goes, and with which options it would hold more:
// slab classes, connections, limits, extstore.
//
// It owns the report and its text. It asks servers, or reads what operators kept of them, and never changes
// one.
package advise
