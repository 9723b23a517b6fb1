// Package known holds the known set: the series whose labels are durable. It is the only memory that Shale
// keeps for every series, and answers "is this series new?" for each series of a batch.
//
// It knows nothing of buffers, parts or labels, and never forgets a series that is active.
package known
