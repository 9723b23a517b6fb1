// Package router takes requests of memcached clients and passes each to the server of its key, in place of
// twemproxy: by its configuration file, with its placement of keys.
//
// It owns the connections of clients and servers, and what it says of them: counters, the error log. It never
// keeps a value, and never sends a request twice.
package router
