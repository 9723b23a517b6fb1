// Package compact merges the blocks of the bucket, so that a day is a few blocks whatever came when.
//
// It owns the decision which blocks are merged with each other, the merge through bounded memory and a temporary file,
// and the cut of its result by day, tenant and key. It never sees the recent past, never decides which blocks count (the
// catalogue does) and changes no row.
//
// # What may be merged
//
// A row of a series and a time may stand in several blocks; the one in the block of the greatest order number counts
// (see package catalog). A merge takes the rows of its inputs to the greatest number of any of them. So, with [lo, hi]
// for the order numbers of the shipped blocks that are in a block:
//
//	A merge with the inputs S, of which L is the greatest hi, leaves out a block x only if no input s has
//	hi(s) < L, hi(s) < hi(x) and lo(x) <= L, and may share a series and a time with x.
//
// In words: what an input is lifted over must not be able to meet it. Inputs that follow each other without a gap may
// always be merged, and so may blocks of different times, tenants or keys. Late rows and the window that they belong to
// are only merged in one merge with all that came between, as far as it touches the same times. A single block may
// always be written anew.
//
// Why that is enough. Call the shipped blocks whose rows are in a block its leaves, and a block sound if no shipped
// block x that is not one of its leaves, but has a number above that of a leaf l and not above hi, can meet l. Shipped
// blocks are sound. The result of a merge is sound: such an x stands visibly in the catalogue, alone or as a leaf of some
// y with lo(y) <= x <= hi(y), and the rule forbids to leave y out, or else already the input that has l was not sound.
// (Is there no such block to be seen? Every shipped block with a number up to L was committed before the input that has
// L, and the compactor has looked at the catalogue once more after it saw that input. Blocks that are still to come get
// numbers above L.) And any set of sound blocks reads right, as long as each shipped block is a leaf of one of them: of
// the shipped blocks that have a row for some series and time, let b be the one whose row counts. Some visible block m
// has the leaf b, and gives b's row. Any other visible block y that has a row there, and not from b, has it from a leaf l
// with a lower number than b's; as y is sound, hi(y) is below b's number too, and m stands above y.
//
// So two compactors may merge the same blocks in different ways at one time, one of them with an old view of the
// catalogue: the result is work done twice and blocks that hold the same rows, which a later merge joins. Nothing is
// locked. (That a value beats a stale marker whichever came last does not change this: "the row that counts" is then the
// last value, if there is one.)
//
// # What is merged
//
// Days, in UTC, are what compaction aims at. See planner:
//
//   - When a day is over, with a grace, everything that was shipped before then and reaches back into days that are over
//     is merged in one go. The result is cut by day: the day itself becomes a few large blocks, and what came late for
//     days before it a small block for each. These are settled.
//   - Settled blocks of one day that lie above each other are merged when there are several, or when the upper ones
//     are large, or when nothing has come for two days.
//   - When too many blocks wait for the end of their day, the small ones among them are joined.
//   - A settled or waiting block that still has deleted rows is written anew without them.
//
// Blocks of different signals or retention groups are never merged.
//
// # How
//
// Inputs are read through a few windows of bounded size each, and merged as sorted streams (store/part). A block is
// written to a local file, uploaded when it is complete, and the file removed; one record then makes all blocks of the
// merge visible and hides the inputs. Until that record is written nothing has changed: a crash leaves objects without
// a record, which the catalogue collects after a day. Ids of blocks are a function of inputs and content, so that a merge
// which is repeated writes the same objects.
//
// A block is cut at 2^24 series and at a number of bytes. A tenant that takes a good share of a block gets blocks of
// its own, cut by key; the others share blocks, which are cut between tenants.
package compact
