// Package admit decides which values a cache on a disk is worth writing: those that a second query wants.
//
// It owns the queue of values that were read once, and the hashes of those that left it. It counts queries
// and not touches, because one query touches a page many times. It never does I/O, and never looks into a
// value.
package admit
