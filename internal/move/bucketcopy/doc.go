// Package bucketcopy copies a bucket to another store, and brings such a copy up to date.
//
// It moves objects without changing a byte: blocks first, each read back and verified by the checksums of its
// own pages, and then the commit records that make them visible. It works while servers use the source. The
// copy shows the source as its records were at one moment, the last one at which they were read.
//
// # Order
//
// The target is a bucket that a server may use at every moment, or none at all:
//
//   - A block is complete, and has a marker, before its record is written. So a copy that stops half-way
//     leaves uploads without a record, which readers ignore.
//   - Deletions are written before blocks that have deleted rows become visible.
//   - A record that replaces blocks is written before the record that holds them. So a block that the source
//     has replaced is never visible without its object.
//   - A record that the source has collected goes last, and a record that holds a block goes before the one
//     that replaces it.
//   - The seed of a new target is the last object. A server refuses a bucket that has blocks and no seed, so
//     that it never takes half a copy for the whole.
//
// The package keeps no state outside of the target: what the target has is what need not be copied. It never
// writes to the source.
package bucketcopy
