// Package slab computes how memcached lays items out in memory: the table of its slab classes, to the digit,
// what an item takes in it, and the classes that suit given items best.
//
// It owns the arithmetic alone, which is that of slabs.c and items.c of memcached 1.4.25 to 1.6. It never
// talks to a server.
package slab
