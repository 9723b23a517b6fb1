// Package compact merges the blocks of the bucket, so that a day is a few blocks in whatever order its rows
// arrived.
//
// It owns the decision which blocks are merged, the merge through bounded memory and a temporary file, and
// the cut of the result by day, tenant, key and retention. It never sees the recent past, never decides which
// blocks are live (the catalogue does), and never changes a row.
//
// # What may be merged
//
// A row of one series and time may be in several blocks; the row in the block of the greatest order number
// counts (see package catalog). A merge lifts the rows of its inputs to the greatest number of any input. Let
// [lo, hi] be the order numbers of the shipped blocks inside a block. Then the rule is:
//
//	A merge of the inputs S, of which L is the greatest hi, leaves out a block x only if no input s has
//	hi(s) < L, hi(s) < hi(x) and lo(x) <= L, and may share a series and a time with x.
//
// In words: an input must not be lifted over a block that it can meet. Inputs that follow each other without
// a gap may always be merged, and so may blocks of different times, tenants or keys. Late rows and the window
// that they belong to are merged only together with all blocks in between that touch the same times. A single
// block may always be rewritten.
//
// Why the rule is enough. The shipped blocks whose rows are in a block are its leaves. Consider a leaf l of a
// block, and a shipped block x that is not a leaf, with a number above that of l and not above hi. The lift
// has put the rows of l above those of x. A block is sound if no such x can meet l.
//
// Shipped blocks are sound. The result of a merge is sound, too. Suppose there were such an x. It is visible
// in the catalogue, alone or as a leaf of some y with lo(y) <= x <= hi(y). Then the rule forbids leaving y
// out, or the input that has l was not sound already. And x is indeed visible. Every shipped block with a
// number up to L was committed before the input that has L or together with it, and the compactor has
// refreshed the catalogue once more after it saw that input. Blocks that are committed later get numbers
// above L, whichever process ships them. Blocks of one ship have the same number, and cannot meet.
//
// Any set of sound blocks reads right, as long as each shipped block is a leaf of one of them. Take all
// shipped blocks with a row for some series and time, and let b be the one whose row counts. Some visible
// block m has the leaf b and returns b's row. Let y be another visible block with a row there that is not
// from b. It has that row from a leaf l with a lower number than b. Because y is sound, hi(y) is below b's
// number, and m is above y.
//
// So two compactors may merge the same blocks in different ways at the same time, even with an old view of
// the catalogue. The result is duplicate work, and blocks with the same rows that a later merge joins. No
// lock is needed. A value beats a stale marker in any order; this does not change the argument: "the row that
// counts" is then the last value, if any.
//
// # What is merged
//
// Compaction aims at blocks of one day, in UTC. See planner:
//
//   - When a day and a grace are over, one merge takes everything that was shipped before then and has rows
//     of past days. The result is cut by day: a few large blocks for the day itself, and a small block for
//     each earlier day that got late rows. These blocks are settled.
//   - Settled blocks of one day that overlap are merged when there are several, when the upper ones are
//     large, or when nothing has arrived for two days.
//   - When too many blocks wait for the end of their day, the small ones are joined.
//   - A settled or waiting block that still has deleted rows is rewritten without them. Small ones that wait
//     are rewritten together.
//   - A settled block of which some series have expired, and others have not, is rewritten without the
//     former.
//
// Blocks of different signals are never merged. Series of settled blocks are divided into groups that are
// kept equally long, so that a block expires as a whole. When rules change, a series may be in two groups, so
// the rule above holds for blocks of all groups.
//
// # Rollups
//
// Rollups of a settled block of metrics are its rows summed up in slots, a block for each length of slots.
// They are made of one block, its base, when no other block shares a series and a day with it, and no
// deletion concerns it. Whatever later happens to the base makes them dead, so that nothing needs to know of
// them: see package catalog. They are then made of what has taken the place of the base.
//
// With rollups, rows of metrics expire by whole blocks only, and only when their rollups were made. Merges do
// not cut expired rows: the rollups of what is left of a day would lack the rest. Retention then says that
// the rollups stand alone. Rows that come later for the days of these stay as they are. Deletions are applied
// to rollups that are alone as to other blocks; a slot goes if the deletion touches it.
//
// # How
//
// Inputs are read through a few windows of bounded size, and merged as sorted streams (store/part). A block
// is written to a local file, uploaded when it is complete, and the file is removed. Then one record makes
// all blocks of the merge visible and hides the inputs. Before that record nothing has changed: a crash
// leaves objects without a record, which the catalogue collects after a day. The ids of blocks are a function
// of inputs and content, so that a repeated merge writes the same objects.
//
// For the same reason a panic before that record is an error of its merge, which the next run tries again.
// One that comes up while a block is read is blamed on the block. A panic in the catalogue ends the process.
//
// A block is cut at 2^24 series and at a number of bytes. A tenant that takes a good share of a block gets
// blocks of its own, cut by key; the others share blocks, which are cut between tenants.
package compact
