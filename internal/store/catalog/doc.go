// Package catalog says which blocks of the bucket are live, in which order their rows arrived, and which rows
// are deleted.
//
// It owns the commit records and the seed: their names and bytes, the order numbers of blocks, the
// generations of deletions, and the time when an object may be deleted. A block is visible when a record
// holds it and no record lists it as replaced. The package never opens or writes a block and starts no
// goroutine.
//
// # Order
//
// A row of one series and time may be in several blocks, and the row that arrived last counts. Order numbers
// decide: all blocks of a ship have its number, and ships are numbered without gaps, as their records are
// created (ship.go). The store lets exactly one process have a number. So numbers ascend as blocks become
// visible, and a block that is not visible yet will be above all visible ones, whichever process ships it.
// Merges therefore need not know what is still being shipped. A shipper ships the rows of one series and time
// in the order in which they arrived, and in different ships.
//
// A ship also says how far its journals are in the bucket (coverage.go). A process that believes that it
// ships a journal, while another one does, is told so: it does not know the last coverage.
//
// A merged block has the numbers [OrderLo, OrderHi] of all shipped blocks whose rows it holds, and counts as
// OrderHi. Package compact says which merges that allows. docs/adr/0003-order-of-blocks.md says why journal
// sequence numbers cannot be the order.
//
// # Losses
//
// A record that disappears would take its rows away without a word. So its absence is evidence: every record
// has a copy (copies.go), a list names records before they are collected (collected.go), and a block that is
// not committed has a marker (uploads.go). With a memory in a folder of the process (memory.go), a loss is
// noticed after a restart, too. docs/format-bucket.md has the rules.
//
// A lost record stays known, because its copy says all that it said: that refuses no query and collects no
// block without need. Only a block whose record is lost with all copies is unknown; queries that touch it
// are refused. Nothing is put back without the operator: if somebody has put an older bucket in place, that
// would mix two states of it.
//
// # Locks
//
// Catalog.commits (one commit at a time) or Catalog.collecting (one garbage collection at a time), then
// Catalog.mu (the known state of the bucket). Queries take no lock: they read an immutable view.
//
// docs/format-bucket.md describes the objects.
package catalog
