// Package catalog says which blocks of the bucket count, in which order their rows came, and which rows are deleted.
//
// It owns the commit records and the seed: their names, their bytes, who replaces whom, the order numbers of blocks, the
// generations of deletions, and when an object may go. A block is visible when a record holds it and no record names it
// among those that it replaces. The package never opens a block, never writes one and starts no goroutine.
//
// # Order
//
// A row of a series and a time may stand in several blocks; the one that came last counts. Which that is, the order
// numbers of the blocks say. A shipped block gets its number when it is committed, above every number that has been
// seen. So numbers ascend as blocks become visible, and a block that is not visible yet will stand above all that are:
// this is why merges need not know what is still on its way. A shipper ships rows of one series and time in the order in
// which they came; then numbers order rows as they came.
//
// A merged block has the numbers [OrderLo, OrderHi] of all shipped blocks whose rows it holds, and counts as OrderHi.
// Which merges that allows is said in package compact.
//
// Journal sequence numbers cannot do this. A window that is shipped late has lower ones than late rows of another time
// that were shipped before it; once those are merged with earlier rows of the window, the merged block would wrongly
// stand above what is still to come.
//
// # Locks
//
// Catalog.commits (one commit at a time) or Catalog.collecting (one collection of garbage at a time), then Catalog.mu
// (what is known of the bucket). Queries take none: they read an immutable view.
//
// docs/format-bucket.md writes the objects down.
package catalog
