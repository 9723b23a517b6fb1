// Package entry says what a catalogue knows of a block of the bucket: enough to rule the block out without
// opening it.
//
// It owns the ids of blocks, the form of entries in commit records, and what follows from an entry alone:
// whether two blocks may share series or rows, and which tenants a block may have. It never does I/O.
package entry
