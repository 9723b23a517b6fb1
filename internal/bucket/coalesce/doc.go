// Package coalesce wraps a bucket and makes one request of several reads.
//
// It owns the reads that are in flight: a read of bytes that another read is fetching waits for that one.
// While requests wait for their turn, or several queries read an object, it also gathers reads for a few
// milliseconds, and joins those of one object that lie near each other. A reader that gives up never fails
// the others. Only ranges are coalesced: objects that are read by ranges never change, whereas Get must see
// the last write.
package coalesce
