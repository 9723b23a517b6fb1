// Package ship takes the blocks of a head to the bucket, and then to the catalogue.
//
// It owns the order of these steps, the ids of blocks, and how far a journal counts as shipped. It never
// reads a row.
package ship
