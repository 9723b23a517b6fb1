// Package items keeps the items of a memcached server in memory: keys, values, flags and times.
//
// It owns a fixed amount of memory, in shards with a lock each, and decides which items leave it (S3-FIFO). A
// store or a get allocates nothing. It never knows the protocol, and never does I/O.
package items
