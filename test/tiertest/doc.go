// Package tiertest gives the stores of tests caches after memory: an SSD, and real memcached servers.
package tiertest
