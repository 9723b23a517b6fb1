// Package pipe is one connection to memcached, with many batches of requests in flight.
//
// Each batch ends with mn, so hits and misses of a whole batch take one round trip. Each request has a number
// that the server repeats, so a response that comes late, twice or unasked never answers another request. It
// owns the connection and its two goroutines. It never dials, and never tries again.
package pipe
