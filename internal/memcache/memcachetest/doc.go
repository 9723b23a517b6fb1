// Package memcachetest runs real memcached servers for tests, on free ports of the loopback interface, and a
// proxy that delays, cuts or damages what they send.
package memcachetest
