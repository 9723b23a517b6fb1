// Package ingest fills a head from one partition of Kafka, and ships it.
//
// A [Partition] has a head of its own. It begins at what the catalogue says is shipped, with an empty folder:
// what an earlier head of the partition had on this disk and had not shipped is read again. Every batch
// counts as shipped only once the bucket has all of its rows. So the disk may be lost, and another machine
// goes on. If two machines hold one partition, the log of ships lets one of them go on, and the other stops.
//
// A partition stops where it would have to leave something out: at a gap, at a record that cannot be read,
// and at rows without labels. It ships what was before. An [Owner] runs the partitions of a process, and
// opens again what has stopped.
package ingest
