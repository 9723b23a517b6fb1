// Package kafka keeps the journal in a topic of Kafka, for roles on several machines.
//
// A [Producer] appends batches. It splits each batch by partition, and a part is one record: that of package
// journal. An append returns only when all in-sync replicas have all parts. A [Reader] reads one partition
// from an offset, and skips none. What stops it has an error of its own type: a [GapError] for records that
// retention deleted, a [PoisonError] for one that does not decode, a [TopicError] for another topic.
//
// A [Group] divides the partitions among processes. It says which they are, and nothing about offsets.
//
// A [State] is a topic by which processes tell each other what is of use, and not needed.
//
// [Describe] and [Check] say whether the settings of a topic keep what was acknowledged.
//
// The package owns connections and their bounds. It never decides which partition a series belongs to, never
// commits offsets, and never keeps rows.
package kafka
