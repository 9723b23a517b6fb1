// Package known holds the known set: the series whose labels are durable. It is the only memory that Shale
// keeps for every series, and answers "is this series new?" for each series of a batch.
//
// A head uses a [Set] as it is. A gateway, which has no head, uses an [Announcer]: a set that calls a series
// known only if its labels were acknowledged by the log within the last hour or so.
//
// It knows nothing of buffers, parts or labels, and never forgets a series that is active.
package known
