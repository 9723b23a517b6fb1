// Package capture records what happens on a memcached server, as the server itself logs it, and finds a
// moment in the record.
//
// It owns the file, which has the lines of the server as they are. It never changes what a server holds.
package capture
