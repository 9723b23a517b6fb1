// Package memcache is a client of several memcached servers, each with its connections, its breaker and the
// time that it is worth waiting for.
//
// It owns which server a key belongs to, how servers are found, and what a server is known to do: how long it
// takes, how large its values may be. It knows nothing of what the values are for, and never tries again: a
// caller that gets no answer does without.
package memcache
