// Package ingester fits the partitions of a process to the others: a [Member] shares them by a group of
// Kafka, and [Held] lets queries of other processes ask for their rows.
//
// It neither reads a partition nor ships it.
package ingester
