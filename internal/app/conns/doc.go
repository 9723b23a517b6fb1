// Package conns keeps the HTTP connections of a server within bounds: how many there are, how long a stop
// waits for them, and how much is read of a request that was refused.
//
// It knows no endpoint.
package conns
