// Package bucket is the contract of an object store.
//
// It owns the interface, the names that objects may have, and the sentinel for a missing object. Stores and
// their wrappers are packages below it, which the suite in buckettest checks. It never does I/O itself.
package bucket
