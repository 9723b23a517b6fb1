// Package meta is the wire format of memcached's meta commands, and of the two classic commands that tell
// about a server: stats and version.
//
// It owns how requests are written and responses are read, within bounds. It never opens a connection and
// never decides what to do about a response.
package meta
