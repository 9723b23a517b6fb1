// Package hash spreads keys over servers: by rendezvous hashing, as twemproxy does by ketama, and as dskit
// does by jump hashing, so that a client of one of these finds the values of another.
//
// It owns the arithmetic alone. It never knows whether a server is up.
package hash
