// Package results is the cache tier of results: values of parts of queries at steps that are over. A
// dashboard that slides computes only its newest steps again.
//
// A [Leaf] is a part of a query whose value at a step depends on nothing but rows near that step. Its steps
// lie on a grid, which is cut into extents of some steps each, whatever range a query has. [Tier.Open] says
// which extents are there. The language evaluates the others, and [Run.Keep] keeps those that are whole and
// closed.
//
// A kept value is returned only while it is what an evaluation would give. [Changes] numbers what happens to
// rows of times that kept values depend on: late rows, deletions, blocks of other processes. The horizon of
// retention is compared at each use. Whoever changes rows tells Changes once the change can be seen, and
// before it is acknowledged.
//
// The package owns the memory of the values, and bounds it in total and for each tenant. It never looks into
// a value, and never evaluates anything.
package results
