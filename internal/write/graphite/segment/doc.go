// Package segment keeps records in numbered files of a folder. Aggregation keeps its log so, and the relay
// its queues.
//
// A file appears whole with its first records, or not at all, and only grows then:
//
//	000007.log
//
// It is a sequence of records in the framing of Pebble, which finds torn and damaged ones. The first record
// is the name of the format of the others. A crash may cut a file off anywhere after the last sync, so a
// reader takes what comes before.
//
// The package owns names, framing and syncs. What records mean, which numbers are in use and when a file is
// removed is for its callers. It has no locks: a file has one writer.
package segment
