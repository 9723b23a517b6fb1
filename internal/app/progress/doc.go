// Package progress knows how far the partitions of an installation have come: what Kafka has acknowledged,
// and what the bucket has of it. A process with the role query refuses what lies in between, unless another
// process holds it.
//
// It follows the log of ships and the ends of partitions. It reads no rows.
package progress
