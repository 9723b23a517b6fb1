// Package topics says which partition of Kafka a series belongs to, and which topics have carried writes.
//
// A topic with its number of partitions is an [Epoch]. Epochs are numbered from 1, and each is an object in
// the root of the bucket, created once and never changed. A later epoch has another topic: with the same
// number of partitions if the topic was lost or moved, or with twice as many. Rows of one series must be
// shipped in the order in which they came. So a partition ships nothing before its parents are closed: the
// partitions of the epoch before that have series of it.
//
// The package owns those objects and that arithmetic. It never talks to Kafka.
package topics
