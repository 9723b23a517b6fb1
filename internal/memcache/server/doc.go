// Package server is a memcached: its text and meta commands, on memory and on the SSD tier of Shale's cache.
//
// It owns the connections of clients, what each command does, and the order of changes in memory and on disk.
// It never knows what values mean, and never serves a value that was replaced or deleted before.
package server
