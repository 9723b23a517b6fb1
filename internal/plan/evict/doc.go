// Package evict has the policies that the simulator compares: those of Shale's tiers, by the code of the
// product, and LRU, extstore, SIEVE, S3-FIFO and the offline optimum.
//
// It owns what a policy keeps and evicts, and counts it in a [Ledger]. Keys are small numbers, and values
// have a size and no bytes. It never decides when a value arrives: the replay does.
package evict
