// Package memcached is the tier of the cache that several processes share: stored pages in memcached servers.
//
// It owns the names and the frame of its values, and the queue of what is to be stored. It also owns the
// single flight of the fleet: of the processes that miss the same page, one reads the bucket, and the others
// wait for it. What it returns has been checked, so a server that lies costs a miss. It never fails a query,
// never keeps one for longer than the bucket would, and drops what it cannot store in time.
package memcached
